#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""examples.py - sallyportd takes every example configuration, sallyport every
example policy: those of deploy, and those that the documents show"""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from tree import Lint  # noqa: E402

CONFIGS = ["deploy/sallyport.json"]
FOLDERS = ["deploy/examples", "deploy/container"]
# a block of JSON that begins with a keyword of the configuration, indented
SHOWN = re.compile(r'(?:^    "(?:[^\n]*)\n)+', re.M)


def said(*command):
    r = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    return r.returncode, (r.stdout + r.stderr).strip()


def main():
    lint = Lint("examples")
    daemon = os.path.join(lint.build, "bin/sallyportd")
    tool = os.path.join(lint.build, "bin/sallyport")

    def check(path, line, *command):
        lint.looked += 1
        status, text = said(*command)
        if status:
            lint.find(path, line, text or "refused without a word")

    configs = CONFIGS + [p for f in FOLDERS for p in lint.files(".json", ".yaml", below=f)
                         if not p.endswith("compose.yaml")]
    for path in configs:
        check(path, 1, daemon, "--check", "--config", os.path.join(lint.source, path))
    check("deploy/policies", 1, tool, "policy", "check",
          os.path.join(lint.source, "deploy/policies"))

    readme = lint.read("README.md")
    shown = SHOWN.findall(readme)
    if not shown:
        lint.find("README.md", 1, "found no configuration, expected one to check")
    for block in shown:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write("{" + block + "}")
            file.flush()
            json.loads("{" + block + "}")
            line = readme[:readme.index(block)].count("\n") + 1
            check("README.md", line, daemon, "--check", "--config", file.name)
    lint.end()


main()
