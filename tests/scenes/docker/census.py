# SPDX-License-Identifier: Apache-2.0
"""census.py - everything on a node that making sandboxes could leave behind

    before = census.take(node)
    ...
    census.settle(node, before)      # waits a little, then says what is left

What is counted is a set of names for each kind, so that what is left has one.
"""
import json
import os
import re
from pathlib import Path

from lab import run

ROLES = ("gateway", "vault", "control", "queue")
COUNTERS = re.compile(r"packets \d+ bytes \d+|# handle \d+|expires \S+|timeout \S+")


def take(node):
    """{kind: names}"""
    inside = ("ip", "netns", "exec", node.lab.gw)
    lines = {
        "links": run(*inside, "ip", "-o", "link"),
        "addresses": run(*inside, "ip", "-o", "addr"),
        "containers": node.docker.cli("ps", "-aq", "--no-trunc"),
        "networks": node.docker.cli("network", "ls", "-q", "--no-trunc"),
        "volumes": node.docker.cli("volume", "ls", "-q"),
        "images": node.docker.cli("images", "-aq", "--no-trunc"),
    }
    found = {kind: set(r.stdout.splitlines()) for kind, r in lines.items()}
    found["links"] = {re.split("[:@] ?", line)[1].strip() for line in found["links"]}
    found["addresses"] = {" ".join(line.split()[1:4]) for line in found["addresses"]}
    found["rules"] = rules(inside)
    found["registrations"] = set(node.registry())
    found["policies"] = node.policies()
    found["records"] = records(node)
    found["mounts"] = {line.split()[4] for line in Path("/proc/self/mountinfo").read_text()
                       .splitlines() if str(node.docker.folder) in line}
    found["shims"] = shims(node)
    return found


def rules(inside):
    """Rules, sets, chains, and each element of a set, without what they count; but no
    meters of floods, which end by themselves."""
    text = run(*inside, "nft", "list", "ruleset").stdout
    found = set()
    for table in re.split(r"^(?=table )", text, flags=re.M):
        name = table.split("{", 1)[0].strip()
        plain = COUNTERS.sub("", table).replace("elements = {", "\n")
        for line in re.split(r"[\n]|,(?= )", plain):
            line = line.strip(" \t{},")
            # of a link that has gone it has the number alone
            if line and not (line[0] in '"0123456789' and "limit rate" in line):
                found.add(f"{name}: {line}")
    return found


def records(node):
    """Of the lifecycle API, all pages."""
    found, page = set(), 1
    while True:
        status, value = node.api.call("GET", f"/v1/sandboxes?page={page}&pageSize=200")
        assert status == 200, value
        found |= {box["id"] for box in value["items"]}
        if not value["pagination"]["hasNextPage"]:
            return found
        page += 1


def shims(node):
    """Processes that Docker keeps beside each container."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"containerd-shim" in command and str(node.docker.folder).encode() in command:
            found.add(pid)
    return found


def left(before, now):
    """{kind: names that were not there}, kinds with some."""
    return {kind: sorted(now[kind] - before[kind]) for kind in now if now[kind] - before[kind]}


def settle(node, before, seconds=20):
    """The kernel takes devices away in its own time; nothing else may be late."""
    def clean():
        now = take(node)
        return now if not left(before, now) else None
    try:
        return node.lab.wait(clean, seconds, "everything to be gone")
    except AssertionError:
        raise AssertionError("left behind: " + json.dumps(left(before, take(node)), indent=1)
                             ) from None


def roles(node):
    """{role: (descriptors, KiB of memory that is its own)}"""
    return {role: (descriptors(pid), private_kib(pid))
            for role in ROLES for pid in [node.lab.role_pid(role)]}


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def private_kib(pid):
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(n) for n in re.findall(r"^Private_(?:Dirty|Clean):\s+(\d+)", text, re.M))
