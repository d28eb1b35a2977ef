#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""budget.py - functions over 60 lines, files over 500; a report, no failure"""
import os
import re
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from tree import Lint, bare  # noqa: E402

FUNCTION_MAX, FILE_MAX, HEADER_MAX = 60, 500, 150
# A function in this layout: its opening and its closing brace stand alone in
# column one; the name is the last word before the first parenthesis above.
NAME = re.compile(r"(\w+)\s*\(")


def functions(text):
    lines, head = text.split("\n"), 0
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{" and start is None:
            start = number
        elif line == "}" and start is not None:
            found = NAME.findall(" ".join(lines[head:start - 1]))
            yield (found[0] if found else "?"), start, number - start - 1
            start = None
        if line in ("", "}", "};"):
            head = number
    return


def main():
    lint, sizes = Lint("budget"), []
    for path in lint.files(".c", ".h"):
        if path.startswith("tests/"):
            continue
        text = lint.read(path)
        count = text.count("\n")
        if count > (HEADER_MAX if path.endswith(".h") else FILE_MAX):
            print(f"{path}:1: {count} lines")
        for name, line, length in functions(bare(text)):
            sizes.append(length)
            if length > FUNCTION_MAX:
                print(f"{path}:{line}: {name}() has {length} lines")
    if sizes:
        print(f"budget: {len(sizes)} functions, median "
              f"{statistics.median(sizes):.0f} lines, longest {max(sizes)}")
    lint.end()


main()
