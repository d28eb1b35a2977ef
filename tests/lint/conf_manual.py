#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""conf_manual.py - sallyport.conf(5) against the keyword table

Every keyword of config.def has an entry in the section it belongs to, with
the default and the bounds of the table; the manual has no other entries.
"""

import ast
import re
import sys

# where the manual puts keywords that stand at the top level
TOP = {"Folders, account, log", "Interception"}


def table(path):
    """section, key -> (kind, default, bounds text or None)"""
    text = re.sub(r"/\*.*?\*/", "", open(path).read(), flags=re.S)
    text = text.replace("UINT32_MAX", str(2**32 - 1))
    text = text.replace("CONFIG_LOOPS_MAX", "256")
    words = {}
    for call in re.findall(r"KEYWORD\((.*?)\)\n", text, flags=re.S):
        section, key, kind, _, rest = call.split(",", 4)
        default, low, high = re.match(
            r'\s*("(?:[^"\\]|\\.)*"),\s*(\d+),\s*(\d+),', rest).groups()
        bounds = f"{low} to {high}." if kind.strip() in ("U16", "U32") else None
        words[ast.literal_eval(section.strip()), ast.literal_eval(key.strip())] = (
            kind.strip(), ast.literal_eval(default), bounds)
    return words


def manual(path):
    """section, key -> the lines of the entry"""
    entries, section, current = {}, None, None
    for line in open(path).read().splitlines():
        if line.startswith(".Ss ") or line.startswith(".Sh "):
            name = line[4:]
            section = "" if name in TOP else name.removeprefix("Section ")
            current = None
        elif line.startswith(".It Cm ") and section is not None:
            current = entries.setdefault((section, line.split()[2]), [])
        elif current is not None:
            current.append(line)
    return entries


def main():
    source = sys.argv[1]
    words = table(f"{source}/src/role/config.def")
    entries = manual(f"{source}/docs/man/sallyport.conf.5")
    wrong = []

    for word, (kind, default, bounds) in words.items():
        name = ".".join(filter(None, word))
        lines = entries.pop(word, None)
        if lines is None:
            wrong.append(f"{name}: not in the manual")
            continue
        if default and f"Default {default}." not in lines:
            wrong.append(f'{name}: the manual does not say "Default {default}."')
        if bounds and bounds not in lines:
            wrong.append(f'{name}: the manual does not say "{bounds}"')
    wrong += [f"{'.'.join(word)}: in the manual, not in the table" for word in entries]

    if len(words) < 30:
        wrong.append("the table was not understood")
    print("\n".join(wrong) or f"{len(words)} keywords")
    return bool(wrong)


sys.exit(main())
