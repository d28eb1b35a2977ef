# SPDX-License-Identifier: Apache-2.0
"""A sandbox that is gone when its answer is on the way

Our sockets answer as whoever the sandbox addressed, in words that it may have
chosen: a denial names the host, an answer of DNS the question. Where such an
answer cannot be delivered, the node's kernel says so to who seems to have sent it,
and quotes it (RFC 1122 3.2.2.1, RFC 4443 3.1); where the sandbox's link has gone,
the answer follows the default route, as a request from outside does that is on its
way to the sandbox. Either way a stranger would have the words, or be asked.
"""
import contextlib
import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from conftest import open_lab
from lab import GATEWAY_O4, GATEWAY_O6, ORIGIN4, ORIGIN6, Sandbox, run

MARK = "sp-escape-gone"
INGRESS = 8081
TRAP = {4: "10.212.3.7", 6: "fd12:3::7"}

ASKS = {
    "tcp": """
import socket, sys
s = socket.create_connection((sys.argv[1], 80), timeout=10)
print("ready", flush=True)
sys.stdin.readline()
s.sendall(f"GET /{sys.argv[2]} HTTP/1.1\\r\\nHost: {sys.argv[2]}\\r\\n\\r\\n".encode())
sys.stdin.readline()
""",
    "dns": """
import socket, sys
socket.create_connection((sys.argv[1], 80), timeout=10)  # who the next hop is, it knows then
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
print("ready", flush=True)
sys.stdin.readline()
name = b"".join(bytes([len(x)]) + x for x in (sys.argv[2].encode(), b"test", b""))
s.sendto(bytes.fromhex("123401000001000000000000") + name + b"\\0\\1\\0\\1", (sys.argv[1], 53))
sys.stdin.readline()
""",
}


@pytest.fixture(scope="module")
def lab():
    def prepare(lab):
        run("ip", "-n", lab.gw, "route", "add", "default", "via", ORIGIN4)
        run("ip", "-n", lab.gw, "-6", "route", "add", "default", "via", ORIGIN6)
    with open_lab("eg", prepare=prepare, config={"ingress": {"listen": f"0.0.0.0:{INGRESS}"}}) as lab:
        yield lab


@pytest.fixture
def ear(lab):
    """Who hears everything that arrives at the origin with the mark."""
    file, ready = lab.tmp / "ear", lab.tmp / "ear.ready"
    p = subprocess.Popen(["ip", "netns", "exec", lab.org, "/usr/bin/python3", Path(__file__).parent / "ear.py",
                          file, MARK, *TRAP.values(), "10.211.10.0/24", "fd11:10::/64"], stdout=open(ready, "wb"))

    def heard():
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    try:
        lab.wait(ready.read_text, 10, "the ear")
        yield heard
    finally:
        p.kill()
        p.wait()
        for f in (file, ready):
            f.unlink(missing_ok=True)


@pytest.fixture
def box(lab):
    made = Sandbox(lab, 10)
    made.iface = f"sp-{os.getpid() % 10000}gone"
    made.attach()
    for version in ("ipv4", "ipv6"):  # a neighbour is asked for three times
        run("ip", "netns", "exec", lab.gw, "sysctl", "-qw", f"net.{version}.neigh.{made.iface}.retrans_time_ms=200")
    try:
        lab.register(made, team="lab")
        yield made
    finally:
        lab.admin.call("DELETE", f"/v1/sandboxes/{made.id}")
        run("ip", "-n", lab.gw, "link", "del", made.iface, check=False)  # the client may hold its namespace
        made.detach()


def deaf(box):
    """From now on nothing arrives inside: no answer, and no question who has its address."""
    box.run("nft", "-f", "-", check=True, input="""
table netdev deaf {
	chain ingress { type filter hook ingress device "e0" priority 0; policy drop; }
}
""")


@contextlib.contextmanager
def asked(lab, box, how, family):
    """A client whose question has been answered, and that cannot hear the answer."""
    with box.popen("/usr/bin/python3", "-c", ASKS[how], TRAP[family], MARK,
                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        try:
            assert p.stdout.readline() == "ready\n"
            deaf(box)
            run("ip", "-n", lab.gw, f"-{family}", "neigh", "flush", "dev", box.iface)
            p.stdin.write("now\n")
            p.stdin.flush()
            lab.wait(lambda: lab.records(sandbox=box.id, verdict="deny"), 5, "the denial")
            yield
        finally:
            p.kill()


@contextlib.contextmanager
def stopped(lab):
    assert lab.stop() == 0, lab.log()
    try:
        yield
    finally:
        lab.start()


def unreachable(lab, box, family):
    lab.wait(lambda: "FAILED" in run("ip", "-n", lab.gw, f"-{family}", "neigh", "show", "dev", box.iface).stdout,
             10, "nobody to have the address")
    time.sleep(0.3)  # what was heard is written


def unplugged(lab, box):
    run("ip", "-n", lab.gw, "link", "del", box.iface)
    time.sleep(3)  # it is sent again after 0.2 s, 0.4 s ...


@pytest.mark.parametrize("family", (4, 6))
@pytest.mark.parametrize("how", ASKS)
def test_no_error_tells_a_stranger_of_it(lab, box, ear, how, family):
    with asked(lab, box, how, family):
        unreachable(lab, box, family)
    assert not ear()


@pytest.mark.parametrize("family", (4, 6))
def test_the_answer_takes_no_other_way(lab, box, ear, family):
    with asked(lab, box, "tcp", family):
        unplugged(lab, box)
    assert not ear()


@pytest.mark.parametrize("family", (4, 6))
def test_nor_when_the_daemon_stops_before_it_is_delivered(lab, box, ear, family):
    with asked(lab, box, "tcp", family), stopped(lab):
        unreachable(lab, box, family)
        unplugged(lab, box)
    assert not ear()


@pytest.mark.parametrize("family", (4, 6))
def test_a_request_from_outside_takes_no_other_way(lab, box, ear, family):
    status, _ = lab.admin.call("PUT", f"/v1/sandboxes/{box.id}", {
        "interface": box.iface, "addresses": [box.v4 if family == 4 else box.v6], "labels": {"team": "lab"},
        "ingress": {}})
    assert status == 200

    def ask():
        r = run("ip", "netns", "exec", lab.org, "curl", "-sS", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}",
                f"http://{GATEWAY_O4}:{INGRESS}/sandboxes/{box.id}/proxy/8000/{MARK}", check=False)
        return r.stdout
    with box.popen("/usr/bin/python3", "-m", "http.server", "8000", "--bind", "::",
                   cwd=lab.tmp, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
        try:
            lab.wait(lambda: ask() == "404", 10, "the server inside")
            run("ip", "-n", lab.gw, "link", "del", box.iface)
            assert ask() == "502"
        finally:
            p.kill()
    time.sleep(0.3)
    assert not ear()


REJECTS = """
table inet rejects {
	chain input {
		type filter hook input priority 10; policy accept;
		udp dport 7 reject with icmpx port-unreachable
	}
}
"""
REFUSED = """
import socket, sys
with socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.settimeout(3)
    s.connect((sys.argv[1], int(sys.argv[2])))
    s.send(b"hello")
    try:
        s.recv(1)
    except OSError as e:
        print(type(e).__name__)
"""


@pytest.mark.parametrize("to", (GATEWAY_O4, GATEWAY_O6))
@pytest.mark.parametrize("port", (7, 9))  # the firewall's, nobody's
def test_the_node_still_tells_others_what_it_refuses(lab, to, port):
    run("ip", "netns", "exec", lab.gw, "nft", "-f", "-", input=REJECTS)
    try:
        r = run("ip", "netns", "exec", lab.org, "/usr/bin/python3", "-c", REFUSED, to, port)
        assert r.stdout.strip() == "ConnectionRefusedError", r
    finally:
        run("ip", "netns", "exec", lab.gw, "nft", "delete", "table", "inet", "rejects")
