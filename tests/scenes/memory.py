# SPDX-License-Identifier: Apache-2.0
"""memory.py - look for byte strings in the memory of a running process"""
import os
import re
from pathlib import Path

CONTEXT = 48
ASAN = "asan" in os.environ.get("SALLYPORT_BUILD", "")
GUARD = {"dd"} if ASAN else {"lo", "dd"}  # under a sanitizer mlock() does nothing
SHADOW = 1 << 36  # mappings so large are a sanitizer's, and hold none of our bytes


def regions(pid):
    """(start, end, what maps it, flags) of everything readable."""
    found, head = [], None
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        m = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(.*)", line)
        if m:
            head = (int(m[1], 16), int(m[2], 16), m[3], m[4])
        elif line.startswith("VmFlags:") and head[2].startswith("r") and head[1] - head[0] < SHADOW:
            found.append((head[0], head[1], f"{head[2]} {head[3]}".strip(),
                          set(line.split()[1:])))
    return found


class Found:
    """One place: .needle, .where, .flags, .around (the bytes about it)."""

    def __init__(self, needle, where, flags, around):
        self.needle, self.where, self.flags, self.around = needle, where, flags, around

    @property
    def guarded(self):
        """Locked into memory, and left out of cores?"""
        return GUARD <= self.flags

    def __repr__(self):
        return f"<{self.needle!r} in {self.where} {' '.join(sorted(self.flags))}: {self.around!r}>"


def search(pid, needles):
    """Where the needles (str or bytes) are in that process. Must be root."""
    texts = [n if isinstance(n, bytes) else n.encode() for n in needles]
    hits, patterns = [], re.compile(b"|".join(map(re.escape, texts)), re.DOTALL)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for start, end, where, flags in regions(pid):
            try:
                data = os.pread(mem.fileno(), end - start, start)
            except OSError:  # [vvar] and the like
                continue
            for m in patterns.finditer(data):
                hits.append(Found(m[0].decode("latin1"), where, flags,
                                  data[max(0, m.start() - CONTEXT):m.end() + CONTEXT]))
    return hits


def pids_of_namespace(ns):
    """Processes that live in a network namespace."""
    inode = os.stat(f"/run/netns/{ns}").st_ino
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{pid}/ns/net").st_ino == inode:
                found.append(int(pid))
        except OSError:
            pass
    return found
