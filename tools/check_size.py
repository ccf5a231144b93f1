"""The size check: no file of 400 lines or more, no function of 60 or more. ``python -m tools.check_size``.

Long files and functions hold more than one idea; the remedy is to split them by idea, not to squeeze lines.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

FOLDERS = ("callsheet", "tests", "benchmarks", "examples", "tools")
FILE_LINES = 400
FUNCTION_LINES = 60


def faults_of(name: str, source: str) -> Iterator[str]:
    """What is too long in one file: ``name:line: what``."""
    lines = len(source.splitlines())
    if lines >= FILE_LINES:
        yield f"{name}:1: the file has {lines} lines; fewer than {FILE_LINES} are allowed"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length >= FUNCTION_LINES:
                yield (
                    f"{name}:{node.lineno}: {node.name}() has {length} lines; "
                    f"fewer than {FUNCTION_LINES} are allowed"
                )


def check(root: Path, folders: Sequence[str] = FOLDERS) -> tuple[int, list[str]]:
    """How many files were looked at under ``root``, and every fault, in the order of the files."""
    files = sorted(file for folder in folders for file in (root / folder).rglob("*.py"))
    faults = [
        fault
        for file in files
        for fault in faults_of(str(file.relative_to(root)), file.read_text(encoding="utf-8"))
    ]
    return len(files), faults


def main() -> int:
    """Print the faults; 1 when there are any."""
    looked_at, faults = check(Path(__file__).resolve().parents[1])
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"sizes: {looked_at} files looked at, {len(faults)} too long")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
