# SPDX-License-Identifier: Apache-2.0
"""look.py PATTERN FOLDER... - prints where the pattern is, as a sandbox sees it

Looks into every file below the folders, and into the environment, the command
line and the memory of every process but this one. Ends with what it looked at.
"""
import os
import re
import sys

pattern, looked = re.compile(sys.argv[1].encode()), {"files": 0, "processes": 0}


def look(where, data):
    for m in pattern.finditer(data):
        print("FOUND", m[0].decode(), where)


def files(folders):
    for folder in folders:
        for path, _, names in os.walk(folder):
            for name in names:
                file = os.path.join(path, name)
                look(file, file.encode(errors="replace"))
                try:
                    if os.path.isfile(file) and os.path.getsize(file) < 1 << 26:
                        with open(file, "rb") as f:
                            look(file, f.read())
                        looked["files"] += 1
                except OSError:
                    pass


def memory(pid):
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            area, rights = line.split()[:2]
            first, last = (int(x, 16) for x in area.split("-"))
            if rights[0] == "r" and "[v" not in line:
                try:
                    look(f"memory of {pid}", os.pread(mem.fileno(), last - first, first))
                except (OSError, OverflowError):
                    pass


def processes():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue
        try:
            for what in ("environ", "cmdline"):
                with open(f"/proc/{pid}/{what}", "rb") as f:
                    look(f"{what} of {pid}", f.read())
            memory(pid)
            looked["processes"] += 1
        except OSError:
            pass


look("own environment", "\n".join(f"{k}={v}" for k, v in os.environ.items()).encode())
files(sys.argv[2:])
processes()
print("looked", looked["files"], looked["processes"])
