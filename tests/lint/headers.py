#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""headers.py - each header compiles alone, and twice"""
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from tree import Lint, run  # noqa: E402


def compile_alone(lint, compiler, path):
    with tempfile.NamedTemporaryFile("w", suffix=".c") as f:
        f.write(f'#include "{path}"\n#include "{path}"\n')
        f.flush()
        return path, run(compiler, "-std=gnu11", "-D_GNU_SOURCE", "-Wall",
                         "-Wextra", "-Wno-unused-function", "-Werror",
                         "-I", lint.source, "-fsyntax-only", f.name)


def main():
    lint = Lint("headers")
    compiler = lint.need(os.environ.get("CC", "cc"))
    headers = [p for p in lint.files(".h") if not p.startswith("tests/")]
    lint.looked = len(headers)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, result in pool.map(
                lambda p: compile_alone(lint, compiler, p), headers):
            if result.returncode:
                lint.find(path, 1, "does not compile alone:\n" + result.stdout)
            if "#pragma once" not in lint.read(path):
                lint.find(path, 1, "no #pragma once")
    lint.end()


main()
