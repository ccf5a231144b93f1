"""What the documents name exists: files, commands of the command line, targets of make, settings."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from callsheet.cli.root import root
from callsheet.settings import Settings, describe

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
MAKEFILE = (ROOT / "Makefile").read_text()


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_every_link_to_a_file_leads_to_one(document: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", document.read_text())
    files = [link for link in links if "://" not in link]
    assert [link for link in files if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_every_command_that_is_shown_exists(document: Path) -> None:
    word = "[a-z]+(?:-[a-z]+)*"
    shown = re.findall(rf"(?:^\$ |`)callsheet ({word}(?: {word})?)", document.read_text(), re.M)
    assert [words for words in shown if not is_command(words.split())] == []


def is_command(words: list[str]) -> bool:
    """Whether the words lead to a command; what follows a command that has none below it are arguments."""
    command: click.Command | None = root
    for word in words:
        if not isinstance(command, click.Group):
            return True
        command = command.get_command(click.Context(command), word)
        if command is None:
            return False
    return True


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_every_target_of_make_that_is_shown_exists(document: Path) -> None:
    shown = re.findall(r"(?:^\$ |`)make (?:PYTHON=\S+ )?([a-z0-9-]+)", document.read_text(), re.M)
    assert [target for target in shown if not re.search(rf"^{target}:", MAKEFILE, re.M)] == []


def test_the_settings_in_the_readme_exist() -> None:
    rows = re.findall(r"^\| `([a-z_0-9]+)` \|", (ROOT / "README.md").read_text(), re.M)
    assert rows
    assert set(rows) <= {row.name for row in describe(Settings())}


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(r"\]\((\d{4}-[^)]+)\)", (folder / "README.md").read_text())
    assert listed == [path.name for path in sorted(folder.glob("[0-9]*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_no_document_names_a_folder_of_somebodys_machine(document: Path) -> None:
    assert re.findall(r"/(?:home|root|Users|work)/\S*", document.read_text()) == []
