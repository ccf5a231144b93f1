"""Tables as text, and what a narrow terminal leaves out."""

from __future__ import annotations

import io

from callsheet.cli.table import Column, Table, fitted, plain, show_rich

COLUMNS = (
    Column("job"),
    Column("n", right=True),
    Column("model", spare=1),
    Column("note", wraps=True, spare=2),
)
TABLE = Table(COLUMNS, [("abc", "1", "tiny", "short"), ("d", "10", "big", "a note " * 6)])


def names(table: Table) -> list[str]:
    return [column.name for column in table.columns]


def test_columns_are_aligned_and_lines_end_without_blanks() -> None:
    table = Table(COLUMNS[:3], [("abc", "1", "tiny"), ("d", "10", "big")])
    assert plain(table).splitlines() == ["job   n  model", "abc   1  tiny", "d    10  big"]


def test_a_bare_table_has_no_head_and_a_title_stands_above() -> None:
    assert plain(Table(COLUMNS[:2], [("a", "1")], bare=True)) == "a  1"
    assert plain(Table(COLUMNS[:2], [("a", "1")], title="History")).splitlines()[0] == "History"


def test_wide_and_combining_letters_count_as_they_are_shown() -> None:
    table = Table((Column("a"), Column("b")), [("猫", "x"), ("e\u0301", "x"), ("abc", "x")], bare=True)
    assert plain(table).splitlines() == ["猫   x", "e\u0301    x", "abc  x"]


def test_cells_stay_on_their_line_and_hold_no_terminal_codes() -> None:
    assert plain(Table((Column("a"),), [("x\x1b[2J\ny",)], bare=True)) == "x\ufffd[2J y"


def test_a_narrow_terminal_gets_the_columns_that_matter() -> None:
    assert names(fitted(TABLE, 200)) == ["job", "n", "model", "note"]
    assert names(fitted(TABLE, 20)) == ["job", "n", "model"]
    assert names(fitted(TABLE, 10)) == ["job", "n"]
    assert names(fitted(TABLE, 1)) == ["job", "n"]
    assert fitted(TABLE, 10).rows == [["abc", "1"], ["d", "10"]]


def test_rich_shows_markup_in_foreign_text_as_it_is() -> None:
    stream = io.StringIO()
    show_rich(Table((Column("a"), Column("b")), [("[red]x[/nope]", ":cat:")], title="[b]T"), stream)
    shown = stream.getvalue()
    assert "[red]x[/nope]" in shown
    assert ":cat:" in shown
    assert "[b]T" in shown
