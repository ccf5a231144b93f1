"""Groups of commands: a module loads when its command runs, and a typing error gets a suggestion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click


@dataclass(frozen=True, slots=True)
class Late:
    """A command that is not loaded yet."""

    home: str  # module:attribute
    help: str  # the first sentence of its help, so that listing loads nothing

    def load(self) -> click.Command:
        """Import it."""
        module, attribute = self.home.split(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


class MissingCommand(click.UsageError):
    """A group was called without a command."""

    def __init__(self, group: click.Group, ctx: click.Context) -> None:
        super().__init__(f"a command is missing: one of {', '.join(group.list_commands(ctx))}", ctx)


class Group(click.Group):
    """A click group with commands that load late."""

    def __init__(self, *args: Any, late: Mapping[str, Late] | None = None, **kwargs: Any) -> None:
        kwargs.setdefault("no_args_is_help", False)
        super().__init__(*args, **kwargs)
        self.late = dict(late or {})

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's own signature
        """Names in order of definition."""
        return [*self.late, *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, loaded now if need be."""
        late = self.late.get(cmd_name)
        return late.load() if late else super().get_command(ctx, cmd_name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does; without arguments, and if it needs some, raises MissingCommand."""
        if not args and not self.invoke_without_command and not ctx.resilient_parsing:
            raise MissingCommand(self, ctx)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; an unknown name raises UsageError with the nearest one."""
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            import difflib  # only a typing error needs it

            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"one of {', '.join(known)}"
            raise click.UsageError(f"no command {name!r}: {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with the first sentence of their help, without loading them."""
        rows = [(name, self._short_help(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _short_help(self, ctx: click.Context, name: str) -> str:
        if name in self.late:
            return self.late[name].help
        command = self.get_command(ctx, name)
        return command.get_short_help_str(limit=200) if command else ""
