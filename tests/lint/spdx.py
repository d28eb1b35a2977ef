#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""spdx.py - every source says its licence, then in one sentence what it is"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from tree import Lint  # noqa: E402

TAG = "SPDX-License-Identifier: Apache-2.0"


def is_script(lint, path):
    with open(os.path.join(lint.source, path), "rb") as f:
        return f.read(2) == b"#!"


def c_check(lint, path):
    lines = lint.read(path).split("\n")
    if lines and lines[0].startswith("/* fuzz: "):
        lines = lines[1:]
    if not lines or lines[0] != f"/* {TAG} */":
        lint.find(path, 1, f"the first line must be /* {TAG} */")
        return
    name = re.escape(os.path.basename(path))
    if len(lines) < 2 or not re.match(rf"/\* {name} - \S", lines[1]):
        lint.find(path, 2, f"line 2 must begin /* {os.path.basename(path)} - "
                           "and say the one job of the file")


def main():
    lint = Lint("spdx")
    for path in lint.files():
        if path.endswith((".c", ".h", ".def")):
            c_check(lint, path)
        elif path.endswith((".py", ".sh")) or is_script(lint, path):
            head = "\n".join(lint.read(path).split("\n")[:3])
            if TAG not in head:
                lint.find(path, 1, f"no {TAG} in the first three lines")
    lint.end()


main()
