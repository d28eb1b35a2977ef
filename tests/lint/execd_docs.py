#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""execd_docs.py - the execution daemon against its manual and its API document

Every flag and variable of the table in config.c stands in sallyport-execd(8),
and no other; every route of routes.def is described in execd.yaml, and every
described operation is a route. A route of any method is described by any.
"""
import os
import re
import sys

try:
    import yaml
except ImportError:
    print("execd_docs: skipped, no PyYAML here")
    sys.exit(77)

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from tree import Lint  # noqa: E402

CONFIG, MANUAL = "src/execd/config.c", "docs/man/sallyport-execd.8"
DEF, DOC = "src/execd/routes.def", "docs/openapi/execd.yaml"
METHODS = {"get", "put", "post", "delete", "patch", "head", "options"}


def manual_check(lint):
    rows = re.findall(r'\{ "([a-z0-9-]+)",\s*(?:"(\w+)"|NULL),\s*ROW_\w+',
                      lint.read(CONFIG))
    text = lint.read(MANUAL)
    if not rows:
        lint.find(CONFIG, 1, "its table was not found: the lint is broken")
    entries = dict.fromkeys(re.findall(r"^\.It Fl -([a-z0-9-]+)", text, re.M))
    for flag, variable in rows:
        if flag not in entries:
            lint.find(MANUAL, 1, f"--{flag} is not there")
        entries.pop(flag, None)
        if variable and not re.search(rf"^\.Ev {variable}\b", text, re.M):
            lint.find(MANUAL, 1, f"{variable} is not there")
    for flag in entries:
        lint.find(CONFIG, 1, f"the manual's --{flag} is no flag")


def routes_of(text):
    return [(m.lower(), p.replace("*}", "}")) for m, p in
            re.findall(r'ROUTE\("([A-Z*]+)", "([^"]+)", \w+,\s+\w+\)', text)]


def refs_check(lint, doc, node):
    if isinstance(node, list):
        for child in node:
            refs_check(lint, doc, child)
    if not isinstance(node, dict):
        return
    target = doc
    for word in node.get("$ref", "#").removeprefix("#").split("/")[1:]:
        target = target.get(word, {}) if isinstance(target, dict) else {}
    if not target:
        lint.find(DOC, 1, f"{node['$ref']} leads nowhere")
    for child in node.values():
        refs_check(lint, doc, child)


def resolve(doc, node):
    for word in node.get("$ref", "").split("/")[1:]:
        node = doc = doc[word] if word in doc else {}
    return node


def operation_check(lint, doc, name, item, operation):
    for word in ("operationId", "summary", "tags", "responses"):
        if word not in operation:
            lint.find(DOC, 1, f"{name} has no {word}")
    parameters = [resolve(doc, p) for p in
                  item.get("parameters", []) + operation.get("parameters", [])]
    given = {p["name"] for p in parameters if p.get("in") == "path"}
    if given != set(re.findall(r"{(\w+)}", name)):
        lint.find(DOC, 1, f"{name}: its path parameters are {sorted(given)}")


def api_check(lint):
    doc = yaml.safe_load(lint.read(DOC))
    routes = routes_of(lint.read(DEF))
    any_method = {p for m, p in routes if m == "*"}
    known, ids = set(routes), []
    for path, item in doc["paths"].items():
        for method in METHODS & set(item):
            name = f"{method.upper()} {path}"
            operation_check(lint, doc, name, item, item[method])
            ids.append(item[method].get("operationId"))
            if (method, path) not in known and path not in any_method:
                lint.find(DEF, 1, f"{name} is no route")
    for method, path in routes:
        item = doc["paths"].get(path, {})
        if not (METHODS & set(item) if method == "*" else method in item):
            lint.find(DOC, 1, f"{method.upper()} {path} is not described")
    for twice in {i for i in ids if ids.count(i) > 1}:
        lint.find(DOC, 1, f"two operations are called {twice}")
    refs_check(lint, doc, doc)


def main():
    lint = Lint("execd_docs")
    manual_check(lint)
    api_check(lint)
    lint.end()


main()
