#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""floors.py - every #include goes down: floors.txt and libraries.txt hold"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from tree import Lint, table  # noqa: E402

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)',
                     re.M)
HERE = os.path.dirname(os.path.abspath(__file__))


def is_below(path, place):
    return path == place or path.startswith(place + "/")


def rooms_load():
    rooms, floor = {}, {}
    for _, words in table(os.path.join(HERE, "floors.txt")):
        floor[words[1]] = int(words[0])
        rooms[words[1]] = set(words[2:])
    for room, uses in rooms.items():
        for use in uses:
            assert floor[use] < floor[room], f"{room} may not use {use}"
    return rooms


def room_of(path, rooms):
    fits = [r for r in rooms if is_below(path, r)]
    return max(fits, key=len) if fits else None


def ours_check(lint, rooms, path, line, target):
    mine, other = room_of(path, rooms), room_of(target, rooms)
    if not os.path.exists(os.path.join(lint.source, target)):
        lint.find(path, line, f'"{target}" is no path from the project root')
    elif mine and other and other != mine and other not in rooms[mine]:
        lint.find(path, line, f"{mine} may not include {target}")
    elif mine and not other:
        lint.find(path, line, f"{target} belongs to no room of floors.txt")


def libraries_load():
    libraries = {}
    for _, words in table(os.path.join(HERE, "libraries.txt")):
        libraries.setdefault(words[0], []).extend(words[1:])
    return libraries


def library_check(lint, libraries, path, line, header):
    for prefix, places in libraries.items():
        if header.startswith(prefix) and \
                not any(is_below(path, p) for p in places + ["tests"]):
            lint.find(path, line,
                      f"<{header}> is met in {', '.join(places)} only")


def main():
    lint, rooms = Lint("floors"), rooms_load()
    libraries = libraries_load()
    for path in lint.files(".c", ".h", ".def"):
        text = lint.read(path)
        if not room_of(path, rooms) and not path.startswith("tests/"):
            lint.find(path, 1, "this folder is no room of floors.txt")
        for match in INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            if match.group(1):
                ours_check(lint, rooms, path, line, match.group(1))
            else:
                library_check(lint, libraries, path, line, match.group(2))
    lint.end()


main()
