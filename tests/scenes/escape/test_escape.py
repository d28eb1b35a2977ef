# SPDX-License-Identifier: Apache-2.0
"""Every way out that we know of, tried from inside a sandbox, in every state of the daemon

Each script in ways/ is one way. It runs with the addresses of both families
and with a mark of its own; listeners stand where it would come out: at the
origin's side of the node, at the neighbour's, and on the node itself. Nothing
may be heard. That the listeners hear, and that the scripts do what they say,
is proved first: the same scripts from behind an interface that is no
sandbox's, on the same careless node that routes everything.
"""
import concurrent.futures
import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from conftest import open_lab
from lab import BIN, GATEWAY_O4, GATEWAY_O6, ORIGIN4, ORIGIN6, Sandbox, run

FOLDER = Path(__file__).parent
WAYS = sorted(p.stem for p in (FOLDER / "ways").glob("*.py"))
MARK = "sp-escape-"
TRAP4, TRAP6 = "10.212.3.", "fd12:3::"
PROXY4, PROXY6 = "192.0.0.8", "100::5350"
# sallyport-execd is no role: it runs inside sandboxes; nor is what the bench builds there
ROLES = sorted({p.name.removeprefix("sallyport-") for p in BIN.glob("sallyport-*")} - {"execd", "load"})
STATES = ("serving", *(f"{r} dead" for r in ROLES), "supervisor dead", "stopped")
AT_ONCE = 12
INGRESS, LIFECYCLE = 8081, 8082  # on every address of the node
RUN_S = 20  # one script, at the very most


def said(way, word):
    """What the script says of itself behind `word`, or ""."""
    for line in (FOLDER / "ways" / f"{way}.py").read_text().splitlines():
        if line.startswith(f"{word}: "):
            return line[len(word) + 2:]
    return ""


def unheard(way):
    """Why a plain node does not let this one out either, or ""."""
    return said(way, "unheard")


def recorded(way):
    """[(family, reason, target)]: what the audit log must say of it.

    A "~" stands before the reason of what is not sent to the way's target."""
    found = []
    for word in said(way, "recorded").split():
        family, reason = word.split("=")
        target = TRAP4 + str(WAYS.index(way) + 1) if family == "4" else f"{TRAP6}{WAYS.index(way) + 1:x}"
        found.append((int(family), reason.lstrip("~"), "" if reason.startswith("~") else target))
    return found


def link(ns, interface):
    """MAC and link-local address."""
    shown = json.loads(run("ip", "-n", ns, "-j", "addr", "show", "dev", interface).stdout)[0]
    local = [a["local"] for a in shown["addr_info"] if a["scope"] == "link"]
    return shown["address"].replace(":", ""), local[0] if local else "fe80::1"


def facts(lab, box, way):
    number = WAYS.index(way) + 1
    mac, local = link(box.ns, "e0")
    gateway_mac, gateway_local = link(lab.gw, box.iface)
    neighbour = lab.sandboxes[1]
    common = {"mac": mac, "gateway_mac": gateway_mac, "interface": "e0", "link_local": local,
              "gateway_link_local": gateway_local, "allowed": "plain.lab.test",
              "inspected": "api.lab.test"}
    four = {"family": 4, "mark": f"{MARK}{way}-4", "target": f"{TRAP4}{number}", "own": box.v4,
            "gateway": box.gw4, "neighbour": neighbour.v4, "node": GATEWAY_O4, "origin": ORIGIN4,
            "proxy": PROXY4, "other_target": f"{TRAP6}{number:x}"}
    six = {"family": 6, "mark": f"{MARK}{way}-6", "target": f"{TRAP6}{number:x}", "own": box.v6,
           "gateway": box.gw6, "neighbour": neighbour.v6, "node": GATEWAY_O6, "origin": ORIGIN6,
           "proxy": PROXY6, "other_target": f"{TRAP4}{number}"}
    return [common | four, common | six]


class Ears:
    """All the listeners; what they heard, by way."""

    def __init__(self, lab):
        self.files = []
        traps = (f"{TRAP4}0/24", f"{TRAP6}/64")
        for name, ns, nets in (("origin", lab.org, traps), ("neighbour", lab.sandboxes[1].ns, ()),
                               ("node", lab.gw, ("--serve",))):
            file, ready = lab.tmp / f"ear-{name}", lab.tmp / f"ear-{name}.ready"
            p = subprocess.Popen(["ip", "netns", "exec", ns, "/usr/bin/python3", FOLDER / "ear.py",
                                  file, MARK, *nets], stdout=open(ready, "wb"))
            lab.procs.append(p)
            lab.wait(ready.read_text, 10, f"the ear of {name}")
            self.files.append((name, file))

    def clear(self):
        for _, file in self.files:
            file.unlink(missing_ok=True)

    def heard(self):
        found = {}
        for name, file in self.files:
            for line in file.read_text().splitlines() if file.exists() else ():
                h = json.loads(line)
                way = trapped(h["to"]) or h["mark"].removeprefix(MARK).rpartition("-")[0]
                found.setdefault(way, []).append(f"{name}, {h['where']}, to {h['to']}: {h['bytes']}")
        return found


def trapped(address):
    """Whose trap it is, or ""."""
    if not address.startswith((TRAP4, TRAP6)):
        return ""
    number = int(address[len(TRAP4):]) if "." in address else int(address[len(TRAP6):] or "0", 16)
    return WAYS[number - 1] if 0 < number <= len(WAYS) else "?"


def try_all(lab, box, at_once=AT_ONCE, ways=WAYS):
    """Runs every way, some at a time."""
    def one(way):
        argument = json.dumps(facts(lab, box, way))
        with contextlib.suppress(subprocess.TimeoutExpired):
            box.run("/usr/bin/python3", FOLDER / "ways" / f"{way}.py", argument, timeout=RUN_S,
                    env=os.environ | {"PYTHONPATH": str(FOLDER)})
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        list(pool.map(one, ways))
    time.sleep(0.3)  # what is on its way arrives


@pytest.fixture(scope="module")
def lab():
    def prepare(lab):
        run("ip", "-n", lab.org, "route", "add", "local", f"{TRAP4}0/24", "dev", "lo")
        run("ip", "-n", lab.org, "-6", "route", "add", "local", f"{TRAP6}/64", "dev", "lo")
        run("ip", "-n", lab.gw, "route", "add", f"{TRAP4}0/24", "via", ORIGIN4)
        run("ip", "-n", lab.gw, "-6", "route", "add", f"{TRAP6}/64", "via", ORIGIN6)
        lab.usual_policy = {**lab.usual_policy, "egress": [
            *lab.usual_policy["egress"], {"action": "allow", "target": "rebind.lab.test"}]}
    # with these the fence lets in more than without: answers to the node
    with open_lab("x", prepare=prepare, config={
            "ingress": {"listen": f"0.0.0.0:{INGRESS}"},
            "lifecycle": {"listen": f"0.0.0.0:{LIFECYCLE}", "insecure": True,
                          "dockerSocket": "/nonexistent/docker.sock"}}) as lab:
        lab.ears = Ears(lab)
        yield lab


@pytest.fixture(scope="module")
def unfenced(lab):
    """What is heard of somebody who sits behind no sandbox's interface."""
    box = Sandbox(lab, 9)
    box.iface = f"ux-{os.getpid() % 10000}"
    box.attach()
    try:
        time.sleep(0.3)
        lab.ears.clear()
        try_all(lab, box)
        yield lab.ears.heard()
    finally:
        box.detach()
        lab.ears.clear()


@pytest.mark.parametrize("way", WAYS)
def test_the_listeners_hear_it_of_others(unfenced, way):
    if not unheard(way):
        assert way in unfenced


def child_pids(lab, role):
    """Of our daemon; by its own account of its children."""
    try:
        children = Path(f"/proc/{lab.daemon.pid}/task/{lab.daemon.pid}/children").read_text().split()
    except OSError:
        return []
    name = f"sallyport-{role}"[:15]
    with contextlib.suppress(OSError):
        return [int(p) for p in children if Path(f"/proc/{p}/comm").read_text().strip() == name]
    return []


@contextlib.contextmanager
def killed(lab, role):
    """Kills the role, and each that is started in its place, for a while."""
    over, ended = threading.Event(), []

    def reap():
        while not over.wait(0.005):
            for pid in child_pids(lab, role):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    ended.append(pid)
    thread = threading.Thread(target=reap)
    thread.start()
    try:
        lab.wait(lambda: ended, 5, f"the {role} to be there")
        yield
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def in_state(lab, state):
    if state == "serving":
        yield
    elif state == "supervisor dead":
        roles = [p for r in ROLES for p in child_pids(lab, r)]
        lab.daemon.kill()
        lab.daemon.wait(5)
        lab.wait(lambda: not any(Path(f"/proc/{p}/status").exists() for p in roles), 10, "the roles to end")
        yield
        lab.start()
    elif state == "stopped":
        lab.stop()
        yield
        lab.start()
    else:
        with killed(lab, state.removesuffix(" dead")):
            yield
        lab.wait(lab_serves(lab), 30, "all roles to be back")


def lab_serves(lab):
    """The daemon serves a sandbox again."""
    def check():
        with contextlib.suppress(Exception):
            return lab.sandboxes[0].curl("https://api.lab.test/", timeout=20)[0] == 200
        return False
    return check


@pytest.fixture(scope="module", params=STATES)
def heard(lab, request):
    box = lab.sandboxes[0]
    assert lab_serves(lab)(), lab.log()
    with in_state(lab, request.param):
        lab.ears.clear()
        try_all(lab, box)
        found = lab.ears.heard()
    yield found


@pytest.mark.parametrize("way", WAYS)
def test_no_way_out(heard, way):
    assert way not in heard, "\n".join(heard[way])


def test_nothing_else_was_heard(heard):
    assert set(heard) <= set(WAYS)


@pytest.fixture(scope="module")
def records(lab):
    """What the audit log says of all of them. Ways of one kind are apart, because
    of one kind only so many a second are recorded."""
    before = len(lab.records())
    try_all(lab, lab.sandboxes[0], 2, [w for i in range(9) for w in WAYS[i::9]])
    time.sleep(2.5)  # what is only counted is told after two looks
    return lab.records()[before:]


def sent_to(record, target):
    to = record.get("original", "")
    return to in (target, f"[{target}]") or to.startswith((f"{target}:", f"[{target}]:"))


@pytest.mark.parametrize("way", WAYS)
def test_the_attempt_is_in_the_audit_log(lab, records, way):
    assert recorded(way) or said(way, "unrecorded")
    for family, reason, target in recorded(way):
        assert [r for r in records if r["verdict"] == "deny" and r.get("reason") == reason
                and r.get("sandbox") == lab.sandboxes[0].id
                and (not target or sent_to(r, target))], \
            [r for r in records if target and target in str(r)] or [r for r in records if r.get("reason") == reason]


def test_records_of_attempts_are_bounded(lab):
    """A flood of one kind is a few records, hides neither another kind nor the
    neighbour, and the status counts all of it."""
    box, neighbour = lab.sandboxes
    flood = "import socket,sys,time\n" \
        "s=socket.socket(socket.AF_INET,socket.SOCK_RAW,47)\n" \
        "for i in range(6000):\n" \
        f"    s.sendto(b'f'*20,('{TRAP4}250',0))\n" \
        "    if i % 20 == 0: time.sleep(0.01)\n"
    once = "import socket,sys\n" \
        f"socket.socket(socket.AF_INET,socket.SOCK_RAW,int(sys.argv[1])).sendto(b'o'*20,('{TRAP4}251',0))\n"
    time.sleep(6)  # the buckets fill again
    before, counted = len(lab.records()), lab.admin.get("/v1/status")["gateway"]["drops"]
    p = box.popen("/usr/bin/python3", "-c", flood)
    try:
        time.sleep(1)
        neighbour.python(once, "47", check=True)
        box.run("/usr/bin/python3", "-c", once.replace("251", "255"), "2", check=True)
    finally:
        p.wait(30)
    lab.wait(lambda: lab.admin.get("/v1/status")["gateway"]["drops"]["protocol"] - counted["protocol"] >= 6001, 5,
             "the counters")
    records = [r for r in lab.records()[before:] if r["kind"] == "packet"]
    floods = [r for r in records if r.get("original") == f"{TRAP4}250"]
    assert 20 <= len(floods) < 150, len(floods)
    assert [r for r in records if r.get("original") == f"{TRAP4}251" and r["sandbox"] == neighbour.id]
    assert [r for r in records if r["reason"] == "router" and r["sandbox"] == box.id]


@pytest.mark.parametrize("port, path, says", [
    (INGRESS, "/status.ok", "OK"), (LIFECYCLE, "/v1/sandboxes", "pagination")])
def test_listeners_are_not_for_the_inside(lab, port, path, says):
    """Whoever is outside is answered, by every address of the node; who is inside by none."""
    box = lab.sandboxes[0]
    r = run("ip", "netns", "exec", lab.org, "curl", "-sS", "--max-time", "5",
            f"http://{GATEWAY_O4}:{port}{path}")
    assert says in r.stdout
    for address in (GATEWAY_O4, box.gw4, lab.sandboxes[1].gw4, "127.0.0.1"):
        for more in ((), ("-H", "Host: api.lab.test"), ("-x", f"http://{PROXY4}:3128")):
            _, text, _ = box.curl("--max-time", "3", *more, f"http://{address}:{port}{path}")
            assert says not in text, (address, more, text)
    assert not lab.records(kind="ingress", sandbox=box.id)


def test_neighbours_are_believed_to_be_who_they_are(lab):
    """What the node knows of its links after all of this."""
    for box in lab.sandboxes:
        mac = link(box.ns, "e0")[0]
        for family in ("-4", "-6"):
            shown = json.loads(run("ip", "-n", lab.gw, family, "-j", "neigh", "show", "dev", box.iface).stdout)
            for entry in shown:
                if "lladdr" in entry:
                    assert entry["lladdr"].replace(":", "") == mac, entry
    assert not run("ip", "-n", lab.gw, "-6", "route", "show", "default").stdout
