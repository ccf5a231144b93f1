"""The tree of commands: what every command has."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from callsheet.cli.root import COMMANDS, root


def walk(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        with click.Context(command) as ctx:
            for name in command.list_commands(ctx):
                child = command.get_command(ctx, name)
                assert child is not None
                yield from walk(child, f"{path} {name}")


TREE = dict(walk(root, "callsheet"))


@pytest.mark.parametrize("path", TREE)
def test_every_command_takes_output_and_debug_and_has_help(path: str) -> None:
    options = {option for param in TREE[path].params for option in param.opts}
    assert {"-o", "--output", "--debug"} <= options
    assert TREE[path].help
    for param in TREE[path].params:
        assert not isinstance(param, click.Option) or param.help, f"{path} {param.name}"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_in_the_list_is_that_of_the_command(name: str) -> None:
    assert COMMANDS[name].load().get_short_help_str(limit=200) == COMMANDS[name].help


def test_the_commands_of_the_issue_are_there() -> None:
    wanted = "job submit,job list,job show,job watch,job cancel,job download,models,config,up,worker,doctor"
    wanted += ",job requeue,job preempt,gpu list,gpu cordon,gpu uncordon,gpu drain"
    wanted += ",explain,rebalance,simulate"
    assert {f"callsheet {path}" for path in wanted.split(",")} <= set(TREE)
