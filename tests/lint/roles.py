#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""roles.py - the linker proves the separation of the roles

roles.txt says which libraries and which calls a role's program must not
hold; this looks into the programs that were built.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from tree import Lint, run, table  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


def libraries_of(program):
    return re.findall(r"\(NEEDED\).*\[(\S+?)\]",
                      run("readelf", "-dW", program).stdout)


def symbols_of(program):
    names = re.findall(r"^\s*[0-9a-f]*\s+[A-Za-z]\s+(\S+)$",
                       run("nm", program).stdout, re.M)
    return {n.split("@")[0] for n in names}


def main():
    lint = Lint("roles")
    lint.need("readelf")
    lint.need("nm")
    for line, words in table(os.path.join(HERE, "roles.txt")):
        name, kind, forbidden = words[0], words[1], words[2:]
        program = os.path.join(lint.build, "bin", name)
        if not os.path.exists(program):
            lint.find("tests/lint/roles.txt", line, f"{program} is not built")
            continue
        lint.looked += 1
        if kind == "library":
            has = [(lib, f) for lib in libraries_of(program)
                   for f in forbidden if lib.startswith(f)]
        else:
            symbols = symbols_of(program)
            has = [(f, f) for f in forbidden if f in symbols]
        for found, _ in has:
            lint.find("tests/lint/roles.txt", line,
                      f"{name} holds the {kind} {found}")
    lint.end()


main()
