#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""selftest.py - the lints find what they are for, in a tree made for it"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from tree import Lint, run  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
HEAD = "/* SPDX-License-Identifier: Apache-2.0 */\n/* {} - a file */\n"

# lint, path, text behind the head, words of the finding ("" = none)
CASES = [
    ("floors", "policy/a.c", '#include "gateway/b.h"\n', "may not include"),
    ("floors", "src/text/a.c", '#include "src/io/b.h"\n', "may not include"),
    ("floors", "gateway/a.c", "#include <lmdb.h>\n", "vault/store.c only"),
    ("floors", "vault/store.c", "#include <lmdb.h>\n", ""),
    ("floors", "policy/a.c", '#include "a.h"\n', "no path from"),
    ("floors", "other/a.c", "", "no room"),
    ("banned", "vault/a.c", "void f(void) { strcpy(a, b); }\n", "strcpy"),
    ("banned", "vault/a.c", "/* strcpy(a) */ char *s = \"strcpy(\";\n", ""),
    ("banned", "vault/a.c", "void f(void) { fork(); }\n", "fork"),
    ("banned", "src/cli/a.c", "void f(void) { secret_open(s); }\n",
     "secret_open"),
    ("banned", "vault/a.c", 'void f(void) { sscanf(a, "%s", b); }\n', "width"),
    ("banned", "vault/a.c", 'void f(void) { sscanf(a, "%9s", b); }\n', ""),
    ("banned", "vault/a.c", "void f(void) { goto out; }\n", "goto"),
    ("banned", "vault/a.c", "/* FIX" "ME */\n", "build it"),
    ("spdx", "vault/b.c", "", ""),
    ("headers", "vault/a.h", "#pragma once\nint f(struct undeclared u);\n",
     "does not compile alone"),
    ("headers", "vault/a.h", "int f(void);\n", "no #pragma once"),
    ("headers", "vault/a.h", "#pragma once\nint f(void);\n", ""),
]


def write(root, path, text):
    full = os.path.join(root, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w", encoding="utf-8") as f:
        f.write(text)


def case_run(lint, name, path, text, words):
    with tempfile.TemporaryDirectory() as root:
        for other in ("gateway/b.h", "src/io/b.h"):
            write(root, other, HEAD.format(os.path.basename(other)) +
                  "#pragma once\n")
        write(root, path, HEAD.format(os.path.basename(path)) + text)
        result = run(sys.executable, os.path.join(HERE, name + ".py"), root,
                     root)
    found = result.returncode != 0 and words in result.stdout
    if found != bool(words) or (not words and result.returncode):
        lint.find(f"tests/lint/{name}.py", 1,
                  f"on {path}: expected '{words}', got: {result.stdout}")


def main():
    lint = Lint("selftest")
    for case in CASES:
        lint.looked += 1
        case_run(lint, *case)
    with tempfile.TemporaryDirectory() as root:
        write(root, "vault/a.c", "int x;\n")
        if not run(sys.executable, os.path.join(HERE, "spdx.py"),
                   root).returncode:
            lint.find("tests/lint/spdx.py", 1, "missed a missing licence")
    lint.end()


main()
