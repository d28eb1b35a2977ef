#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""packages.py - the group run of deploy/packages.txt against the programs

What a program of the build asks the loader for is in a package of that group, so
that a node with these and no others starts it.
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from tree import Lint  # noqa: E402

LIST = "deploy/packages.txt"
# what every Debian has
ALWAYS = {"libc6", "libgcc-s1"}


def needed(readelf, program):
    text = subprocess.run([readelf, "-d", program], capture_output=True, text=True,
                          check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(\S+)\]", text)


def owners(library):
    text = subprocess.run(["dpkg-query", "-S", f"*/{library}"], capture_output=True,
                          text=True, check=False).stdout
    return {line.split(":")[0] for line in text.splitlines()}


def main():
    lint = Lint("packages")
    readelf = lint.need("readelf")
    lint.need("dpkg-query")
    group = {line.split()[1] for line in lint.read(LIST).splitlines()
             if line.startswith("run ")}
    folder = os.path.join(lint.build, "bin")
    # the sanitizers' own libraries are no node's
    programs = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    asked = {}
    for name in programs:
        for library in needed(readelf, os.path.join(folder, name)):
            asked.setdefault(library, name)
    for library, name in sorted(asked.items()):
        lint.looked += 1
        if re.match(r"lib(asan|ubsan|tsan)\.", library):
            continue
        found = owners(library)
        if not found & (group | ALWAYS):
            lint.find(LIST, 0, f"{name} needs {library} of {sorted(found) or 'no package'}, "
                               "which is not in the group run")
    if not asked:
        lint.find(LIST, 0, f"found no programs in {folder}")
    lint.end()


main()
