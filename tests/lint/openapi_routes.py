#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""openapi_routes.py - control's APIs against their documents, both ways

Every route of a routes.def is described, every described operation is a route,
open routes say so. Then the replies that the unit tests of the control role
got from the server (BUILD_DIR/*-replies/*.jsonl, one a line) must have a
described status and fit the schema given for it; every operation must have
been seen at least once. Without that folder the second part is left out.
"""
import json
import os
import re
import sys

try:
    import yaml
except ImportError:
    print("openapi_routes: skipped, no PyYAML here")
    sys.exit(77)

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
from tree import Lint  # noqa: E402

# table of routes, document, folder of replies, what paths may begin with
APIS = [
    ("src/control/routes.def", "docs/openapi/admin.yaml", "api-replies", ""),
    ("src/control/lifecycle/routes.def", "docs/openapi/lifecycle.yaml",
     "lifecycle-replies", "/v1"),
    ("src/control/egress/routes.def", "docs/openapi/egress.yaml",
     "egress-replies", ""),
]
METHODS = {"get", "put", "post", "delete", "patch"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool,
         "integer": int, "null": type(None)}


def routes_of(text):
    """(method, path) -> is it open?"""
    rows = re.findall(r'ROUTE\("(\w+)", "([^"]+)", (\w+),\s+\w+\)', text)
    return {(m.lower(), p): a.endswith("OPEN") for m, p, a in rows}


def operations_of(doc):
    return {(m, p): op for p, item in doc["paths"].items()
            for m, op in item.items() if m in METHODS}


def resolve(doc, node):
    while isinstance(node, dict) and "$ref" in node:
        target = doc
        for word in node["$ref"].removeprefix("#/").split("/"):
            target = target[word]
        node = target
    return node


def type_fits(value, name):
    if name == "integer" and isinstance(value, bool):
        return False
    return isinstance(value, TYPES[name])


def misfit(doc, schema, value, where="reply"):
    """What does not fit the schema, or None."""
    schema = resolve(doc, schema)
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(type_fits(value, k) for k in kinds):
        return f"{where}: {type(value).__name__}, expected {kinds}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where}: {value!r} is not in {schema['enum']}"
    if isinstance(value, int) and value < schema.get("minimum", value):
        return f"{where}: below the minimum"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        return f"{where}: {value!r} does not match {schema['pattern']}"
    if isinstance(value, list):
        return items_misfit(doc, schema, value, where)
    if isinstance(value, dict):
        return members_misfit(doc, schema, value, where)
    return None


def items_misfit(doc, schema, value, where):
    for i, item in enumerate(value):
        wrong = misfit(doc, schema.get("items", {}), item, f"{where}[{i}]")
        if wrong:
            return wrong
    return None


def members_misfit(doc, schema, value, where):
    known = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name in schema.get("required", []):
        if name not in value:
            return f"{where}: {name} is missing"
    for name, member in value.items():
        if name not in known and others is False:
            return f"{where}: {name} is not described"
        wrong = misfit(doc, known.get(name, others if others is not True
                                      else {}), member, f"{where}.{name}")
        if wrong:
            return wrong
    return None


def refs_check(lint, name, doc, node):
    if isinstance(node, dict):
        if "$ref" in node:
            try:
                resolve(doc, node)
            except KeyError:
                lint.find(name, 1, f"{node['$ref']} leads nowhere")
        for child in node.values():
            refs_check(lint, name, doc, child)
    elif isinstance(node, list):
        for child in node:
            refs_check(lint, name, doc, child)


def operation_check(lint, api, doc, key, is_open):
    op = operations_of(doc)[key]
    name = f"{key[0].upper()} {key[1]}"
    item = doc["paths"][key[1]]
    for word in ("operationId", "summary", "tags", "responses"):
        if word not in op:
            lint.find(api[1], 1, f"{name} has no {word}")
    if (op.get("security") == []) != is_open:
        lint.find(api[1], 1, f"{name}: who may use it differs from {api[0]}")
    given = {resolve(doc, p)["name"]
             for p in item.get("parameters", []) + op.get("parameters", [])
             if resolve(doc, p)["in"] == "path"}
    if given != set(re.findall(r"{(\w+)}", key[1])):
        lint.find(api[1], 1, f"{name}: its path parameters are {given}")


def operation_at(operations, method, path):
    """The operation that a request line means; plain paths come first."""
    path = path.split("?")[0]
    for key in sorted(operations, key=lambda k: "{" in k[1]):
        pattern = re.sub(r"{\w+}", "[^/]+", key[1])
        if key[0] == method and re.fullmatch(pattern, path):
            return key
    return None


def body_misfit(doc, content, body):
    """Of JSON; where text is described as well, what is no JSON is text."""
    if "application/json" not in content:
        return None
    try:
        value = json.loads(body)
    except json.JSONDecodeError:
        return None if len(content) > 1 else "not JSON"
    return misfit(doc, content["application/json"]["schema"], value)


def reply_check(lint, api, doc, reply):
    operations = operations_of(doc)
    path = reply["path"]
    if api[3] and path.startswith(api[3] + "/"):
        path = path.removeprefix(api[3])
    key = operation_at(operations, reply["method"].lower(), path)
    if not key:
        return None
    responses = operations[key]["responses"]
    status = str(reply["status"])
    described = status if status in responses else "default"
    if described == "default" and reply["status"] < 400:
        lint.find(api[1], 1, f"{key}: status {status} is not described")
        return key
    content = resolve(doc, responses[described]).get("content", {})
    wrong = body_misfit(doc, content, reply["body"])
    if key == ("get", "/openapi.json") and json.loads(reply["body"]) != doc:
        wrong = "it is not this document"
    if wrong:
        lint.find(api[1], 1, f"{key}: status {status}: {wrong}")
    return key


def replies_check(lint, api, doc):
    folder = os.path.join(lint.build, api[2])
    if not os.path.isdir(folder):
        print(f"openapi_routes: no {api[2]} of the unit tests to look at")
        return
    seen = set()
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            for line in f:
                if line.endswith("\n"):
                    seen.add(reply_check(lint, api, doc, json.loads(line)))
                    lint.looked += 1
    for key in sorted(set(operations_of(doc)) - seen):
        lint.find("tests/unit/control", 1,
                  f"no test asks {key[0].upper()} {key[1]}")


def api_check(lint, api):
    table, name = api[0], api[1]
    doc = yaml.safe_load(lint.read(name))
    routes, operations = routes_of(lint.read(table)), operations_of(doc)
    for key in sorted(set(routes) - set(operations)):
        lint.find(name, 1, f"{key[0].upper()} {key[1]} is not described")
    for key in sorted(set(operations) - set(routes)):
        lint.find(table, 1, f"{key[0].upper()} {key[1]} is no route")
    for key in sorted(set(operations) & set(routes)):
        operation_check(lint, api, doc, key, routes[key])
    refs_check(lint, name, doc, doc)
    replies_check(lint, api, doc)


def main():
    lint = Lint("openapi_routes")
    for api in APIS:
        api_check(lint, api)
    lint.end()


main()
