#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compatibility.py - docs/compatibility.md has every row, and its tests exist

Rows 1 to 48 of the known weaknesses and the cases from the field stand once
each, in order. The last cell of each row names at least one test and holds
nothing else: `path::name` is a function in tests/path that its runner calls,
`path` alone a case file.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from tree import Lint  # noqa: E402

PAGE = "docs/compatibility.md"
ROWS = [str(n) for n in range(1, 49)] + ["36", "37", "40"]
VERDICTS = ("same", "better", "n/a")
REFERENCE = re.compile(r"`([a-z]+/[^`\s]+?\.[a-z]+(?:::\w+)?)`")


def is_called(text, name, path):
    """A function that pytest collects, or one in cmocka's list."""
    if path.endswith(".py"):
        return name.startswith("test_") and re.search(rf"^(?:async )?def {name}\(", text, re.M)
    return (re.search(rf"^static void {name}\(void \*\*", text, re.M)
            and len(re.findall(rf"\b{name}\b", text)) > 1)


def reference_check(lint, line, reference):
    path, _, name = reference.partition("::")
    path = f"tests/{path}"
    if not os.path.isfile(os.path.join(lint.source, path)):
        lint.find(PAGE, line, f"there is no {path}")
    elif not name and not path.endswith(".case"):
        lint.find(PAGE, line, f"{path}: which test of it?")
    elif name and not is_called(lint.read(path), name, path):
        lint.find(PAGE, line, f"{path} has no test {name}")


def row_check(lint, line, cells):
    references = REFERENCE.findall(cells[-1])
    if not references:
        lint.find(PAGE, line, "a row that names no test")
    if cells[-1] != " ".join(f"`{r}`" for r in references):
        lint.find(PAGE, line, "the last cell holds more than names of tests")
    for reference in references:
        reference_check(lint, line, reference)
    if cells[0].isdigit() and (len(cells) != 5 or cells[3] not in VERDICTS):
        lint.find(PAGE, line, f"expected one of {', '.join(VERDICTS)}")


def main():
    lint = Lint("compatibility")
    rows = []
    for line, text in enumerate(lint.read(PAGE).splitlines(), 1):
        cells = [c.strip() for c in text.strip("| ").split("|")]
        if not text.startswith("|") or cells[0] in ("#", "where") or set(cells[0]) == {"-"}:
            continue
        row_check(lint, line, cells)
        rows += [cells[0]] if cells[0].isdigit() else []
    if rows != ROWS:
        lint.find(PAGE, 1, f"found rows {' '.join(rows)}, expected {' '.join(ROWS)}")
    lint.end()


main()
