# SPDX-License-Identifier: Apache-2.0
"""Everything is killed at moments that nobody chose, while clients work: nothing that
was answered for is lost, no packet passes the fence, nothing remains.

SALLYPORT_CHAOS_SECONDS is how long (75), SALLYPORT_CHAOS_SEED which schedule; both
are printed. Everything else of the scene is in chaos.py.
"""
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import chaos
import pytest
from chaos import MARK, TRAP4, TRAP6
from lab import BIN, GATEWAY_O4, ORIGIN4, ORIGIN6, run

SECONDS = int(os.environ.get("SALLYPORT_CHAOS_SECONDS", "75"))
SEED = int(os.environ.get("SALLYPORT_CHAOS_SEED", random.randrange(1 << 30)))
TENANTS = 4
EAR = Path(__file__).parents[1] / "escape/ear.py"
# of a link that has gone it has the number alone
BUCKET = re.compile(r'("[^"]+"|\d+) .*limit rate |elements =$')
VOLATILE = re.compile(r"(packets|bytes|handle) \d+| # handle \d+|expires [^\s,]+")


@pytest.fixture
def ear(node):
    """Hears what gets out of the node towards the traps, or with a mark."""
    lab = node.lab
    run("ip", "-n", lab.org, "route", "add", "local", f"{TRAP4}0/24", "dev", "lo")
    run("ip", "-n", lab.org, "-6", "route", "add", "local", f"{TRAP6}/64", "dev", "lo")
    run("ip", "-n", lab.gw, "route", "add", f"{TRAP4}0/24", "via", ORIGIN4)
    run("ip", "-n", lab.gw, "-6", "route", "add", f"{TRAP6}/64", "via", ORIGIN6)
    node.targets = [f"{TRAP4}7", f"{TRAP6}7", GATEWAY_O4, ORIGIN4, ORIGIN6]
    file, ready, procs = lab.tmp / "ear", lab.tmp / "ear.ready", []
    for words in ((lab.org, f"{TRAP4}0/24", f"{TRAP6}/64"), (lab.gw, "--serve")):
        procs.append(subprocess.Popen(
            ["ip", "netns", "exec", words[0], sys.executable, EAR, file, MARK, *words[1:]],
            stdout=open(ready, "ab")))
    lab.wait(lambda: ready.read_text().count("ready") == 2, 10, "the ears")

    def heard():
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    # who is no sandbox is heard: the same program, on the node itself
    p = subprocess.Popen(["ip", "netns", "exec", lab.gw, *chaos.attacker("control", node.targets)])
    try:
        lab.wait(lambda: {"?", f"{MARK}control"} & {h["mark"] for h in heard()} and {
            h["to"] for h in heard()} >= {f"{TRAP4}7", f"{TRAP6}7"}, 20, "the ears to hear")
    finally:
        p.kill()
        p.wait()
    time.sleep(0.5)
    file.unlink()
    yield heard
    for p in procs:
        p.kill()
        p.wait()


def left_over(node):
    """Everything that belongs to sandboxes, as it is now."""
    docker, gw = node.docker, node.lab.gw
    rules = VOLATILE.sub("", run("ip", "netns", "exec", gw, "nft", "list", "ruleset").stdout)
    rules = filter(None, map(str.strip, re.split(r"[,{}\n]", rules)))
    links = json.loads(run("ip", "-n", gw, "-j", "link").stdout)
    return {
        "containers": sorted(docker.containers()), "registry": sorted(node.registry()),
        "policies": sorted(node.policies()),
        "volumes": sorted(docker.cli("volume", "ls", "-q").stdout.split()),
        "images": sorted(docker.cli(
            "images", "--format", "{{.Repository}}:{{.Tag}}").stdout.split()),
        "sandboxes": node.api.call("GET", "/v1/sandboxes")[1]["items"],
        "snapshots": node.api.call("GET", "/v1/snapshots")[1]["items"],
        # buckets of rates are the kernel's, and end by themselves
        "rules": sorted(r for r in rules if not BUCKET.match(r)),
        "links": sorted(link["ifname"] for link in links),
    }


def differences(before, after):
    """What is there of a kind only before, and only after."""
    found = {}
    for kind in before:
        one, other = (Counter(map(str, x[kind])) for x in (before, after))
        if one != other:
            found[kind] = (list(one - other), list(other - one))
    return found


def records(node):
    """What the vault holds; the daemon is stopped for it."""
    assert node.lab.stop() == 0
    found = run(BIN / "sallyport-vault", "--config", node.lab.config_path, "verify").stdout
    node.lab.start()
    node.connected()
    return re.search(r"\d+ records in \d+ scopes, \d+ findings", found).group()


def everything(node, path):
    """All pages of a list."""
    items, page = [], 1
    while True:
        status, value = node.api.call("GET", f"{path}?page={page}&pageSize=100")
        assert status == 200, value
        items += value["items"]
        if not value["pagination"]["hasNextPage"]:
            return items
        page += 1


def unsettled(node):
    """What Docker, the records and the registry do not agree about."""
    shown = {s["id"]: s["status"]["state"] for s in everything(node, "/v1/sandboxes")}
    states = {"running": {"Running"}, "paused": {"Paused"}, "exited": {"Failed", "Terminated"}}
    docker = dict(line.split() for line in node.docker.cli(
        "ps", "-a", "--format", "{{.Names}} {{.State}}").stdout.splitlines())
    wrong = {name: (docker.get(name), shown.get(name.removeprefix("sandbox-")))
             for name in docker.keys() | {f"sandbox-{i}" for i in shown}}
    wrong = {k: v for k, v in wrong.items() if v[1] not in states.get(v[0], ())}
    registry = set(node.registry()) ^ set(shown)
    policies = {f"sandbox.{i}" for i in shown} ^ {
        p for p in node.policies() if p.startswith("sandbox.")}
    return wrong or registry or policies


def check_box(node, tenant, box, shown):
    wrong = []

    def must(what, may, value):
        if value not in may.values:
            wrong.append(f"{box.id}: its {what} is {value}, not one of {may.values}")
    must("expiry", box.expires, shown["expiresAt"])
    must("metadata", box.metadata, shown["metadata"]["turn"])
    if shown["metadata"]["tag"] != box.tag:
        wrong.append(f"{box.id}: is another one: {shown['metadata']}")
    if node.registry()[box.id]["labels"]["turn"] != shown["metadata"]["turn"]:
        # a patch whose answer was not had may have ended between the two
        if len(box.metadata.values) == 1:
            wrong.append(f"{box.id}: the registry's labels are not its metadata")
    if not tenant.known_tokens(box):
        wrong.append(f"{box.id}: has no endpoints")
        return wrong
    if shown["status"]["state"] != "Running":
        return wrong  # its ports do not answer, that of the egress API neither
    status, text = tenant.reach("policy", box, 18080, "/policy")
    targets = {r["target"] for r in json.loads(text)["policy"]["egress"]} if status == 200 else None
    must("policy", box.opened, targets and chaos.TOGGLED in targets)
    if targets and chaos.ALLOWED not in targets:
        wrong.append(f"{box.id}: its policy has lost what was allowed: {targets}")
    status, text = tenant.reach("vault", box, 18080, "/credential-vault")
    if (status == 200) != (box.secret.values != [None]) and len(box.secret.values) == 1:
        wrong.append(f"{box.id}: a vault of {box.secret.values} answers {status}")
    if (tenant.command(box, f"echo {box.tag}") or "").strip() != box.tag:
        wrong.append(f"{box.id}: runs no command")
    return wrong


def injected(node, tag):
    """The credentials of every call that the origin received of this sandbox."""
    found, log = [], node.lab.origin_log
    for line in log.read_text().splitlines() if log.exists() else ():
        record = json.loads(line)
        if record["path"] == f"/inj/{tag}":
            fields = {k.lower(): v for k, v in record["headers"]}
            found.append(fields.get("authorization", "").removeprefix("Bearer "))
    return found


def check_origin(node, boxes):
    """No call without a credential, none with another sandbox's, and the last
    one with the value that was set last."""
    wrong = []
    for box in boxes:
        seen = injected(node, box.tag)
        if set(seen) - box.secrets:
            wrong.append(f"{box.id}: calls carried {set(seen) - box.secrets}")
    return wrong


def check_last_call(node, tenant, box):
    before = len(injected(node, box.tag))
    if tenant.call(box) != "200":
        return [f"{box.id}: an injected call does not work"]
    seen = injected(node, box.tag)[before:]
    return [] if seen and seen[-1] in box.secret.values else [
        f"{box.id}: the credential is {seen}, not one of {box.secret.values}"]


def check_all(node, tenants):
    """What must not be; at least one sandbox has lived through it, and has a vault."""
    called = 0
    wrong = [c for t in tenants for c in t.complaints]
    shown = {s["id"]: s for s in everything(node, "/v1/sandboxes")}
    tags = {s["metadata"]["tag"]: i for i, s in shown.items()}
    for t in tenants:
        wrong += [f"{tag}: was refused and is there: {shown[tags[tag]]['status']}"
                  for tag in t.refused if tag in tags]
        wrong += [f"{b.id}: was removed and is there" for b in t.gone if b.id in shown]
        wrong += [f"{tag}: half made: {shown[tags[tag]]['status']}" for tag in t.lost
                  if tag in tags and shown[tags[tag]]["status"]["state"] in ("Pending", "Stopping")]
        for box in t.boxes:
            if box.id not in shown:
                if not box.may_be_gone:
                    wrong.append(f"{box.id} ({box.tag}): is lost")
                continue
            wrong += check_box(node, t, box, shown[box.id])
            if shown[box.id]["status"]["state"] == "Running" and None not in box.secret.values:
                wrong += check_last_call(node, t, box)
                called += 1
        wrong += check_origin(node, t.boxes + t.gone)
    print(f"{called} sandboxes with a vault lived to the end")
    return wrong if called else [*wrong, "nothing was proved: no sandbox with a vault lives"]


def check_snapshots(node, tenants):
    shown = {s["id"]: s["status"]["state"] for s in everything(node, "/v1/snapshots")}
    wrong = [f"snapshot {i}: {s}" for i, s in shown.items() if s not in ("Ready", "Failed")]
    for t in tenants:
        for box in t.boxes + t.gone:
            wrong += [f"snapshot {i}: is lost" for i, may_be_gone in box.snapshots.items()
                      if i not in shown and not may_be_gone]
    return wrong


def remove_all(node):
    for one in everything(node, "/v1/sandboxes"):
        status, value = node.api.call("DELETE", f"/v1/sandboxes/{one['id']}")
        assert status in (204, 404), value
    for one in everything(node, "/v1/snapshots"):
        status, value = node.api.call("DELETE", f"/v1/snapshots/{one['id']}")
        assert status in (204, 404), value


def summary(tenants):
    total = {}
    for t in tenants:
        for key, n in t.count.items():
            total[key] = total.get(key, 0) + n
    return ", ".join(f"{what} {outcome}: {n}" for (what, outcome), n in sorted(
        total.items(), key=str))


def test_chaos(node, ear):
    print(f"SALLYPORT_CHAOS_SECONDS={SECONDS} SALLYPORT_CHAOS_SEED={SEED}")
    node.api.delete(node.api.create()["id"])  # what the first one makes for all
    held, before = records(node), left_over(node)
    over = threading.Event()
    disturber = chaos.Disturber(node, SEED)
    tenants = [chaos.Tenant(node, i, SEED, over) for i in range(TENANTS)]
    for t in tenants:
        t.start()
    try:
        disturber.run(SECONDS)
    finally:
        over.set()
        for t in tenants:
            t.join(120)
    print(summary(tenants))
    assert not any(t.is_alive() for t in tenants), "a client still waits for an answer"
    node.lab.wait(node.lab.ready, 30, "the daemon to serve")
    node.api.delete(node.api.create()["id"])
    try:
        node.lab.wait(lambda: not unsettled(node), 75, "everything to agree")
    except AssertionError as e:
        raise AssertionError(f"{e}: {unsettled(node)}\n{node.lab.log()[-4000:]}")
    wrong = check_all(node, tenants) + check_snapshots(node, tenants)
    assert not wrong, "\n".join(wrong) + "\n" + "\n".join(disturber.done)
    assert not ear(), ear()[:5]
    remove_all(node)
    if any(what.startswith("dockerd") for what in disturber.done):
        # the port of a container that it was about to plug in or out it forgets; an image
        # it first makes and then names, which it may not come to
        for link in set(left_over(node)["links"]) - set(before["links"]):
            # it may go by itself meanwhile; what stays is seen below
            subprocess.run(["ip", "-n", node.lab.gw, "link", "del", link], check=False)
        node.docker.cli("image", "prune", "-f")
    try:
        node.lab.wait(lambda: not differences(before, left_over(node)), 15, "nothing to remain")
    except AssertionError:
        raise AssertionError(str(differences(before, left_over(node))))
    assert records(node) == held
    assert not ear()
