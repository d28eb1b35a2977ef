# SPDX-License-Identifier: Apache-2.0
"""tree.py - what every lint shares: the files of the project, and findings

A lint is a program called as `lint SOURCE_DIR BUILD_DIR`. It prints one line
per finding, "file:line: sentence", and exits 1 when there was one, 0 when the
tree is clean, 77 when the tool it needs is missing (ctest: skipped).
"""
import os
import re
import subprocess
import sys

SKIP = {"build", ".git", "corpus", "__pycache__", ".cache"}


class Lint:
    def __init__(self, title):
        self.title = title
        self.source = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else ".")
        self.build = os.path.abspath(
            sys.argv[2] if len(sys.argv) > 2 else "build/dev")
        self.findings = 0
        self.looked = 0

    def files(self, *endings, below=""):
        """Paths relative to the project, sorted; endings like ".c"."""
        found = []
        for at, folders, names in os.walk(os.path.join(self.source, below)):
            folders[:] = sorted(f for f in folders if f not in SKIP)
            found += [os.path.relpath(os.path.join(at, n), self.source)
                      for n in names if not endings or n.endswith(endings)]
        return sorted(found)

    def read(self, path):
        self.looked += 1
        with open(os.path.join(self.source, path), encoding="utf-8",
                  errors="replace") as f:
            return f.read()

    def find(self, path, line, sentence):
        self.findings += 1
        print(f"{path}:{line}: {sentence}")

    def need(self, tool):
        """Path of a program, or exit 77."""
        for folder in os.environ.get("PATH", "").split(":") + ["/usr/sbin"]:
            path = os.path.join(folder, tool)
            if os.access(path, os.X_OK):
                return path
        print(f"{self.title}: skipped, no {tool} here")
        sys.exit(77)

    def end(self):
        if not self.looked:
            self.find("tests/lint", 0, "looked at nothing: the lint is broken")
        print(f"{self.title}: {self.findings} findings, "
              f"{self.looked} looked at")
        sys.exit(1 if self.findings else 0)


def bare(text, strings=True):
    """C text with comments (and string contents) blanked, lines kept."""
    def blank(match):
        s = match.group(0)
        if s[0] == "/":
            return re.sub(r"[^\n]", " ", s)
        return s[0] + s[-1] if strings and len(s) > 1 else s
    return re.sub(
        r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'",
        blank, text, flags=re.S)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def table(path):
    """Rows of a small text table: words, `#` begins a comment."""
    with open(path, encoding="utf-8") as f:
        for number, row in enumerate(f, 1):
            words = row.split("#")[0].split()
            if words:
                yield number, words


def run(*argv, **options):
    return subprocess.run(argv, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, **options)
