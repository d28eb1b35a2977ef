#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""banned.py - unsafe calls stand nowhere; secrets are opened by listed files

banned.txt names calls and the few files that may make them; secrets.txt names
every file that may look into a struct secret. Tests may call what they like.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from tree import Lint, bare, line_of, table  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
WORDS = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b")


def is_below(path, place):
    return path == place or path.startswith(place + "/")


def calls_check(lint, path, text, name, places):
    for match in re.finditer(rf"(?<![\w.>]){name}[ \t]*\(", text):
        if not any(is_below(path, p) for p in places):
            lint.find(path, line_of(text, match.start()),
                      f"{name}() is not allowed here")


def scanf_check(lint, path, text):
    """Strings of scanf() need a width."""
    for match in re.finditer(r"scanf\s*\([^;]*?;", text):
        if re.search(r"%(?:s|\[)", match.group(0)):
            lint.find(path, line_of(text, match.start()),
                      "scanf() of a string without a width")


def main():
    lint = Lint("banned")
    rows = [(w[0], w[1:]) for _, w in table(os.path.join(HERE, "banned.txt"))]
    openers = [w[0] for _, w in table(os.path.join(HERE, "secrets.txt"))]
    rows += [(name, openers) for name in ("secret_open", "secret_fill")]
    for path in lint.files(".c", ".h", ".def"):
        whole = lint.read(path)
        text = bare(whole)
        if not path.startswith("tests/"):
            for name, places in rows:
                calls_check(lint, path, text, name, places)
            scanf_check(lint, path, bare(whole, strings=False))
        for match in WORDS.finditer(whole):
            lint.find(path, line_of(whole, match.start()),
                      f"{match.group(0)}: build it, or write an issue")
        if not path.startswith("tests/") and re.search(r"\bgoto\s+\w+;", text):
            lint.find(path, 1, "goto: use CLEANUP attributes")
    lint.end()


main()
