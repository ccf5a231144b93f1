"""Recorded traffic."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from callsheet.errors import SettingsError
from callsheet.simulator.scenario import Arrival
from callsheet.simulator.trace import read_trace

HEAD = "arrival_s,tier,user,model,steps,service_s,else\n"
LATE = "2.5,pro,ann,m1,30.0,4.0,x\n"
EARLY = "1.5,free,bob,M2,0.5,7,\n"


def written(folder: Path, text: str | bytes, name: str = "trace.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_rows_come_in_order_of_arrival_with_a_step_at_least(tmp_path: Path) -> None:
    assert read_trace(written(tmp_path, HEAD + LATE + "\n" + EARLY)) == (
        Arrival(1.5, "bob", "free", "M2", 7.0, 1),
        Arrival(2.5, "ann", "pro", "m1", 4.0, 30),
    )


def test_gzip_is_known_by_content(tmp_path: Path) -> None:
    plain = read_trace(written(tmp_path, HEAD + LATE))
    assert read_trace(written(tmp_path, gzip.compress((HEAD + LATE).encode()), "packed.csv")) == plain


def test_tenant_goes_before_user(tmp_path: Path) -> None:
    text = "arrival_s,tier,user,tenant,model,steps,service_s\n1,pro,wrong,right,m,3,4\n"
    assert read_trace(written(tmp_path, text))[0].tenant == "right"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "lacks the column arrival_s, tenant"),
        (HEAD, "holds no job"),
        (HEAD.replace("model", "thing") + LATE, "lacks the column model"),
        (HEAD + LATE + "soon,pro,ann,m1,30,4,x\n", "line 3: arrival_s is 'soon', not a number"),
        (HEAD + "-1,pro,ann,m1,30,4,x\n", "line 2: arrival_s is '-1'; allowed: a number from 0 up"),
        (HEAD + "1,pro,ann,m1,nan,4,x\n", "line 2: steps is 'nan'"),
        (HEAD + "1,pro,ann,m1,30,0,x\n", "line 2: service_s is 0"),
        (HEAD + "1,,ann,m1,30,4,x\n", "line 2: tier is empty"),
        (HEAD + "1,pro,ann\n", "line 2: it has too few fields"),
        (b"\x1f\x8bnot gzip at all", "cannot be read"),
        (gzip.compress(HEAD.encode(), mtime=0)[:20], "cannot be read"),
        (b"\xff\xfe\x00", "cannot be read"),
    ],
)
def test_faults_name_the_place(tmp_path: Path, text: str | bytes, says: str) -> None:
    with pytest.raises(SettingsError) as told:
        read_trace(written(tmp_path, text))
    assert says in str(told.value)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="does not exist"):
        read_trace(tmp_path / "none.csv")
    with pytest.raises(SettingsError, match="cannot be read"):
        read_trace(tmp_path)
