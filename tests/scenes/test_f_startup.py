# SPDX-License-Identifier: Apache-2.0
"""What a sandbox's own first process does, or when it begins, changes nothing: the fence
is outside of it and stands before anything passes."""
import contextlib
import os
import subprocess
import time

import pytest
from conftest import open_lab
from lab import BIN, ORIGIN4, ORIGIN6, OTHER4, run

TRAP4, TRAP6 = OTHER4, ORIGIN6
MARK = b"startup-gate"

# Everything that an entrypoint could undo inside, then every direct way out once.
ENTRYPOINT = """
import os, socket, subprocess, sys
trap4, trap6, gw4, gw6 = sys.argv[1:5]
for name in list(os.environ):
    if name.lower().endswith("_proxy") or "CERT" in name or "CA_" in name:
        del os.environ[name]
quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
for command in ("nft flush ruleset", "iptables -F", "iptables -t nat -F", "ip rule flush", "ip rule add from all lookup main",
                f"ip route replace default via {gw4}", f"ip -6 route replace default via {gw6}",
                "ip link set e0 arp on", "sysctl -qw net.ipv4.conf.all.rp_filter=0"):
    subprocess.run(command.split(), **quiet)
open("/etc/resolv.conf", "w").write(f"nameserver {trap4}\\n")
for family, trap in ((socket.AF_INET, trap4), (socket.AF_INET6, trap6)):
    for kind, port in ((socket.SOCK_DGRAM, 53), (socket.SOCK_DGRAM, 9999), (socket.SOCK_STREAM, 9999),
                       (socket.SOCK_STREAM, 80)):
        s = socket.socket(family, kind)
        s.settimeout(0.5)
        try:
            s.connect((trap, port))
            s.send(b"startup-gate" + b"." * 20)
        except OSError:
            pass
        s.close()
    try:
        socket.socket(family, socket.SOCK_RAW, 253).sendto(b"startup-gate", (trap, 0) + (0, 0) * (family == socket.AF_INET6))
    except OSError:
        pass
print("through")
"""

# Writes down when it hears the mark: each line a time of the monotonic clock.
EAR = """
import socket, sys, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
print("ready", flush=True)
with open(sys.argv[1], "a", buffering=1) as out:
    while True:
        data, where = s.recvfrom(65536)
        if where[2] != socket.PACKET_OUTGOING and where[0] != "lo" and b"startup-gate" in data:
            print(time.monotonic(), file=out)
"""

# A datagram each millisecond, from before there is a daemon.
KNOCK = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print("ready", flush=True)
while True:
    try:
        s.sendto(b"startup-gate", (sys.argv[1], 9999))
    except OSError:
        pass
    time.sleep(0.001)
"""


@pytest.fixture(scope="module")
def lab():
    with open_lab("f") as lab:
        lab.ear = lab.tmp / "ear"
        p = lab.in_origin("/usr/bin/python3", "-c", EAR, lab.ear, stdout=subprocess.PIPE, text=True)
        assert p.stdout.readline() == "ready\n"
        yield lab


def heard(lab):
    time.sleep(0.2)
    return [float(line) for line in lab.ear.read_text().split()] if lab.ear.exists() else []


def entrypoint(sandbox):
    # a resolv.conf of its own, which it may overwrite
    etc = f"/etc/netns/{sandbox.ns}/resolv.conf"
    before = open(etc).read()
    try:
        r = sandbox.python(ENTRYPOINT, TRAP4, TRAP6, sandbox.gw4, sandbox.gw6)
        assert r.stdout == "through\n", r.stderr
    finally:
        with open(etc, "w") as f:
            f.write(before)


@contextlib.contextmanager
def removed(lab):
    """No daemon and no rules: what a node is before the first start."""
    assert lab.stop() == 0
    run("ip", "netns", "exec", lab.gw, BIN / "sallyportd", "--config", lab.config_path, "--remove-rules")
    yield
    if not lab.daemon:
        lab.start()


@contextlib.contextmanager
def knocking(sandbox):
    p = sandbox.popen("/usr/bin/python3", "-c", KNOCK, TRAP4, stdout=subprocess.PIPE, text=True)
    try:
        assert p.stdout.readline() == "ready\n"
        yield
    finally:
        p.kill()
        p.wait()


def rules_stand(lab):
    r = run("ip", "netns", "exec", lab.gw, "nft", "list", "table", "inet", "sallyport", check=False)
    return "tproxy" in r.stdout or "counter packets" in r.stdout


def test_case_56_an_overridden_entrypoint_opens_nothing(lab, sandbox):
    """What is inside is the sandbox's own; the same entrypoint is heard where there is no fence."""
    with removed(lab):
        entrypoint(sandbox)
        assert len(heard(lab)) >= 4, "the way out is one"
    lab.wait(lambda: sandbox.curl("https://api.lab.test/")[0] == 200, 10, "the sandbox to be served")
    before = len(heard(lab))
    entrypoint(sandbox)
    assert len(heard(lab)) == before
    # and it was seen
    for match in ({"kind": "dns", "reason": "malformed"}, {"kind": "flow", "original": f"{TRAP4}:9999"},
                  {"kind": "packet", "reason": "protocol", "original": TRAP4},
                  {"kind": "connect", "original": f"{TRAP4}:9999"}):
        assert lab.record(verdict="deny", sandbox=sandbox.id, **match)
    assert sandbox.curl("https://api.lab.test/after")[0] == 200


def test_case_56_the_rules_stand_before_anything_is_served(lab, sandbox):
    """A sandbox that sends from before the daemon's start is heard until the rules stand, and
    never after, though the daemon serves nobody yet."""
    with removed(lab), knocking(sandbox):
        lab.wait(lambda: heard(lab), 5, "a careless node to forward it")
        began = time.monotonic()
        p = subprocess.Popen(["ip", "netns", "exec", lab.gw, str(BIN / "sallyportd"), "--config", str(lab.config_path)],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            lab.wait(lambda: rules_stand(lab), 10, "the rules")
            stood = time.monotonic()
            served = False
            while not served and time.monotonic() - began < 20:
                with contextlib.suppress(OSError, AssertionError):
                    served = lab.admin.get("/v1/status")["ready"]
            ready = time.monotonic()
            assert served
            time.sleep(0.5)
        finally:
            p.terminate()
            p.wait(20)
        late = [t for t in heard(lab) if t > stood]
        print(f"rules after {stood - began:.3f} s, ready after {ready - began:.3f} s")
        assert not late, (len(late), late[0] - stood)
        # stopped in order: still nothing
        assert not [t for t in heard(lab) if t > stood]
    lab.wait(lambda: sandbox.curl("https://api.lab.test/")[0] == 200, 10, "the sandbox to be served")


def test_case_56_without_a_ca_nobody_is_served(lab, sandbox):
    """The vault does not come up: the rules stand, and what policy allows does not pass either."""
    assert lab.stop() == 0
    hung = lab.tmp / "hung"
    hung.write_text("#!/bin/sh\nexec sleep 600\n")
    hung.chmod(0o755)
    log = open(lab.tmp / "hung.log", "wb")
    p = subprocess.Popen(["ip", "netns", "exec", lab.gw, "unshare", "-m", "sh", "-c",
                          'mount --bind "$1" "$2" && shift 2 && exec "$@"', "sh", str(hung), str(BIN / "sallyport-vault"),
                          str(BIN / "sallyportd"), "--config", str(lab.config_path)], stdout=log, stderr=log)
    try:
        lab.wait(lambda: "tproxy" in run("ip", "netns", "exec", lab.gw, "nft", "list", "table", "inet", "sallyport",
                                         check=False).stdout, 10, "the rules")
        before = len(heard(lab))
        for url in ("https://api.lab.test/early", "http://plain.lab.test/early"):
            r = sandbox.run("curl", "-sS", "--max-time", "3", "--resolve", f"{url.split('/')[2]}:443:{ORIGIN4}",
                            "--resolve", f"{url.split('/')[2]}:80:{ORIGIN4}", url)
            assert r.returncode != 0 or "403" in r.stdout, r.stdout
        entrypoint(sandbox)
        assert len(heard(lab)) == before
        assert "early" not in lab.origin_log.read_text()
        with contextlib.suppress(OSError, AssertionError):
            assert not lab.admin.get("/v1/status")["ready"]
    finally:
        p.terminate()
        p.wait(20)
        lab.start()
    lab.wait(lambda: sandbox.curl("https://api.lab.test/")[0] == 200, 10, "the sandbox to be served")
    assert os.path.getsize(lab.run_dir / "ca.pem") > 0
