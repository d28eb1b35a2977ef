# SPDX-License-Identifier: Apache-2.0
"""A sandbox sends by its own addresses and reaches its gateway alone: what it forges
is dropped where it is plugged, on an interface of its own and as a port of a bridge.
Frames are made by hand; each must change nothing, and the honest twin must work."""
import contextlib
import ipaddress
import os
import re
import signal
import struct
import subprocess
import time

import frames
import pytest
from conftest import HERE, open_lab
from frames import ARP, BROADCAST, IP4, IP6, ether, option
from lab import ORIGIN4, ORIGIN6, run

MARK = b"Mark-Of-The-Lock-51c8"
OTHER_MAC = "02:11:22:33:44:55"
ZERO_MAC = "00:00:00:00:00:00"
ALL_NODES, ALL_NODES_MAC = "ff02::1", "33:33:00:00:00:01"


class Port:
    """A sandbox at a port of a bridge; looks like lab.Sandbox to the helpers."""

    def __init__(self, lab, bridge, number):
        self.lab, self.bridge = lab, bridge
        self.ns = f"{lab.prefix}b{number}"
        self.iface, self.port = bridge, f"vp{os.getpid() % 10000}p{number}"
        self.v4, self.gw4 = f"10.219.0.{10 + number}", "10.219.0.1"
        self.v6, self.gw6 = f"fd19::{10 + number}", "fd19::1"
        self.id = f"sandbox-port-{number}"
        g = lab.gw
        run("ip", "netns", "add", self.ns)
        run("ip", "link", "add", "e0", "netns", self.ns, "type", "veth",
            "peer", "name", self.port, "netns", g)
        run("ip", "-n", g, "link", "set", self.port, "master", bridge, "up")
        run("ip", "-n", self.ns, "addr", "add", f"{self.v4}/24", "dev", "e0")
        run("ip", "-n", self.ns, "addr", "add", f"{self.v6}/64", "dev", "e0", "nodad")
        for dev in ("lo", "e0"):
            run("ip", "-n", self.ns, "link", "set", dev, "up")
        run("ip", "-n", self.ns, "route", "add", "default", "via", self.gw4)
        run("ip", "-n", self.ns, "-6", "route", "add", "default", "via", self.gw6)

    def run(self, *cmd, **kw):
        return run("ip", "netns", "exec", self.ns, *cmd, check=kw.pop("check", False),
                   env=self.lab.sandboxes[0].env(), **kw)

    def register(self, **more):
        self.lab.admin.call("PUT", f"/v1/sandboxes/{self.id}", {
            "interface": self.iface, "port": self.port, "mac": hardware(self.ns),
            "addresses": [self.v4, self.v6]} | more)


def hardware(ns, dev="e0"):
    return run("ip", "-n", ns, "-br", "link", "show", "dev", dev).stdout.split()[2]


def in_gateway(lab, *cmd, **kw):
    return run("ip", "netns", "exec", lab.gw, *cmd, **kw).stdout


def link_local(mac):
    """RFC 4291 appendix A."""
    m = frames.mac(mac)
    return str(ipaddress.ip_address(b"\xfe\x80" + bytes(6) + bytes([m[0] ^ 2]) + m[1:3] + b"\xff\xfe" + m[3:]))


def tables(lab):
    return {family: in_gateway(lab, "nft", "list", "table", family, "sallyport_lock")
            for family in ("netdev", "inet", "arp", "bridge")}


def devices(lab):
    """Where the lock is attached."""
    return set(re.findall(r'hook ingress device "(\S+)"', tables(lab)["netdev"]))


def dropped(lab):
    """Packets that the lock dropped, everywhere."""
    return sum(int(n) for text in tables(lab).values()
               for n in re.findall(r"counter (?:drop_\w+ \{\s+)?packets (\d+)", text))


def send(sandbox, *what):
    r = run("ip", "netns", "exec", sandbox.ns, "/usr/bin/python3", HERE / "frames.py", "e0",
            *[f.hex() for f in what])
    assert not r.stderr


BLAST = """
import socket, sys, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(('e0', 0))
frame = bytes.fromhex(sys.argv[1])
print('ready', flush=True)
end = time.monotonic() + 30
while time.monotonic() < end:
    try:
        s.send(frame)
    except OSError:
        pass
    time.sleep(0.0002)
"""


@contextlib.contextmanager
def blast(ns, frame):
    """The frame without pause, as soon as the other end is up."""
    p = subprocess.Popen(["ip", "netns", "exec", ns, "/usr/bin/python3", "-c", BLAST, frame.hex()],
                         stdout=subprocess.PIPE, text=True)
    try:
        assert p.stdout.readline() == "ready\n"
        yield
    finally:
        p.kill()
        p.wait()


@contextlib.contextmanager
def refused(lab, count=1):
    """Everything sent inside is dropped by the lock, and nothing else of it is seen."""
    before = dropped(lab)
    yield
    time.sleep(0.05)
    assert dropped(lab) >= before + count


def works(sandbox):
    r = sandbox.run("curl", "-sS", "--max-time", "5", "--resolve", f"api.lab.test:443:{ORIGIN4}",
                    "-o", "/dev/null", "-w", "%{http_code}", "https://api.lab.test/works")
    r6 = sandbox.run("curl", "-sS", "--max-time", "5", "--resolve",
                     f"api.lab.test:443:[{ORIGIN6}]", "-o", "/dev/null", "-w", "%{http_code}",
                     "https://api.lab.test/works")
    return (r.stdout, r6.stdout) == ("200", "200") or (r.stdout + r.stderr, r6.stdout + r6.stderr)


def neighbours(lab, dev):
    return in_gateway(lab, "ip", "neigh", "show", "dev", dev)


def lock(lab, sandbox, **more):
    value = lab.admin.call("PUT", f"/v1/sandboxes/{sandbox.id}", {
        "interface": sandbox.iface, "addresses": [sandbox.v4, sandbox.v6],
        "mac": hardware(sandbox.ns)} | more, expect=200)[1]
    assert value["lockedAt"] == sandbox.iface and "lockNote" not in value, value


@pytest.fixture(scope="module")
def lab():
    with open_lab("g") as lab:
        for s in lab.sandboxes:
            lock(lab, s)
        yield lab


@pytest.fixture(autouse=True)
def still_works(lab):
    yield
    for s in lab.sandboxes:
        assert works(s) is True
    time.sleep(0.1)  # records of what is allowed wait a little: they are no next test's


@pytest.fixture
def gateway_mac(lab, sandbox):
    return hardware(lab.gw, sandbox.iface)


# -- addresses -----------------------------------------------------------------------

@pytest.mark.parametrize("forged", ["neighbour", "same network", "origin", "nobody", "gateway"])
@pytest.mark.parametrize("version", [4, 6])
def test_foreign_source(lab, sandbox, neighbour, gateway_mac, forged, version):
    """Before the lock an address of the same network came as far as the gateway."""
    src = {"neighbour": (neighbour.v4, neighbour.v6), "same network": ("10.211.1.77", "fd11:1::77"),
           "origin": (ORIGIN4, ORIGIN6), "nobody": ("0.0.0.0", "::"),
           "gateway": (sandbox.gw4, sandbox.gw6)}[forged][version == 6]
    dst = ORIGIN6 if version == 6 else ORIGIN4
    own = hardware(sandbox.ns)
    before = len(lab.records())
    with refused(lab, 2):
        for proto, data in ((6, frames.tcp_syn(src, dst, 443)),
                            (17, frames.udp(src, dst, 5000, 53, MARK))):
            send(sandbox, ether(own, gateway_mac, frames.kind_of(src),
                                frames.packet(src, dst, proto, data)))
    time.sleep(0.1)
    # nobody believed the source, and whose packet it was is known all the same
    for record in lab.records()[before:]:
        assert (record["kind"], record["reason"]) == ("packet", "source"), record
        assert record["sandbox"] == sandbox.id, record


def test_link_local_source_is_for_discovery_only(lab, sandbox, gateway_mac):
    own = hardware(sandbox.ns)
    local = link_local(own)
    with refused(lab):
        send(sandbox, ether(own, gateway_mac, IP6, frames.v6(
            local, ORIGIN6, 6, frames.tcp_syn(local, ORIGIN6, 443))))
    in_gateway(lab, "ip", "neigh", "flush", "dev", sandbox.iface)
    before = dropped(lab)
    send(sandbox, ether(own, gateway_mac, IP6, frames.solicit(
        local, sandbox.gw6, sandbox.gw6, option(1, own))))
    time.sleep(0.1)
    assert dropped(lab) == before
    assert local in neighbours(lab, sandbox.iface)


def test_foreign_hardware_address(lab, sandbox, gateway_mac):
    before = len(lab.records(reason="mac"))
    with refused(lab, 3):
        for src, dst in ((sandbox.v4, ORIGIN4), (sandbox.v6, ORIGIN6)):
            send(sandbox, ether(OTHER_MAC, gateway_mac, frames.kind_of(src), frames.packet(
                src, dst, 6, frames.tcp_syn(src, dst, 443))))
        send(sandbox, ether(OTHER_MAC, BROADCAST, ARP, frames.arp(
            1, hardware(sandbox.ns), sandbox.v4, ZERO_MAC, sandbox.gw4)))
    lab.wait(lambda: len(lab.records(reason="mac", sandbox=sandbox.id)) >= before + 3, 5, "the records")
    assert {r["scheme"] for r in lab.records(reason="mac")[before:]} == {"tcp", "arp"}


# -- ARP -----------------------------------------------------------------------------

@pytest.mark.parametrize("operation", [1, 2])
def test_arp_for_another(lab, sandbox, neighbour, operation):
    own = hardware(sandbox.ns)
    in_gateway(lab, "sysctl", "-qw", f"net.ipv4.conf.{sandbox.iface}.arp_accept=1")
    with refused(lab, 4):
        for claimed in (neighbour.v4, sandbox.gw4, "10.211.1.99", "0.0.0.0"):
            send(sandbox, ether(own, BROADCAST, ARP, frames.arp(
                operation, own, claimed, own if operation == 2 else ZERO_MAC, sandbox.gw4)))
    for claimed in (neighbour.v4, "10.211.1.99"):
        assert claimed not in neighbours(lab, sandbox.iface)


def test_arp_with_another_hardware_address(lab, sandbox):
    own = hardware(sandbox.ns)
    with refused(lab, 2):
        for operation in (1, 2):
            send(sandbox, ether(own, BROADCAST, ARP, frames.arp(
                operation, OTHER_MAC, sandbox.v4, ZERO_MAC, sandbox.gw4)))
    assert OTHER_MAC not in neighbours(lab, sandbox.iface)


def test_own_arp_is_heard(lab, sandbox):
    own = hardware(sandbox.ns)
    in_gateway(lab, "ip", "neigh", "flush", "dev", sandbox.iface)
    before = dropped(lab)
    send(sandbox,
         ether(own, BROADCAST, ARP, frames.arp(1, own, "0.0.0.0", ZERO_MAC, sandbox.v4)),  # probe
         ether(own, BROADCAST, ARP, frames.arp(1, own, sandbox.v4, ZERO_MAC, sandbox.gw4)))
    time.sleep(0.1)
    assert dropped(lab) == before
    assert f"{sandbox.v4} lladdr {own}" in neighbours(lab, sandbox.iface)


# -- neighbour discovery -------------------------------------------------------------

def forged_discovery(lab, sandbox, neighbour):
    own, gw = hardware(sandbox.ns), sandbox.gw6
    yield "advertise for the neighbour", frames.advertise(
        sandbox.v6, ALL_NODES, neighbour.v6, option(2, own))
    yield "advertise for the gateway", frames.advertise(sandbox.v6, ALL_NODES, gw, option(2, own))
    yield "advertise from another", frames.advertise("fd11:1::77", gw, "fd11:1::77", option(2, own))
    yield "advertise another's hardware address", frames.advertise(
        sandbox.v6, gw, sandbox.v6, option(2, OTHER_MAC))
    yield "solicit with another's hardware address", frames.solicit(
        sandbox.v6, gw, gw, option(1, OTHER_MAC))
    yield "solicit from another", frames.solicit("fd11:1::77", gw, gw, option(1, own))
    yield "solicit with a second option", frames.solicit(
        sandbox.v6, gw, gw, option(1, own), option(1, OTHER_MAC))
    yield "duplicate detection of the gateway", frames.solicit("::", gw, gw)
    yield "discovery from afar", frames.v6(sandbox.v6, gw, 58, frames.icmp6(
        sandbox.v6, gw, 136, struct.pack(">I", 0x60000000) + frames.ip(sandbox.v6)), hops=64)
    yield "discovery behind an extension header", frames.v6(
        sandbox.v6, gw, 60, bytes([58, 0, 1, 4, 0, 0, 0, 0]) + frames.icmp6(
            sandbox.v6, gw, 136, struct.pack(">I", 0x60000000) + frames.ip(gw)
            + option(2, own)), hops=255)


def test_forged_discovery(lab, sandbox, neighbour, gateway_mac):
    own = hardware(sandbox.ns)
    in_gateway(lab, "ip", "neigh", "flush", "dev", sandbox.iface)
    for what, packet in forged_discovery(lab, sandbox, neighbour):
        before = dropped(lab)
        send(sandbox, ether(own, gateway_mac, IP6, packet))
        time.sleep(0.05)
        assert dropped(lab) > before, what
    table = neighbours(lab, sandbox.iface)
    assert OTHER_MAC not in table and neighbour.v6 not in table and "fd11:1::77" not in table


def router_advertisement(src, own):
    prefix = struct.pack(">BBBBIII", 3, 4, 64, 0xc0, 86400, 86400, 0) + frames.ip("fd66::")
    return frames.discovery(src, ALL_NODES, 134, struct.pack(">BBHII", 64, 0, 1800, 0, 0)
                            + option(1, own) + prefix)


def test_router_advertisement_redirect_and_mld(lab, sandbox):
    """The node is one that would believe a router on this interface."""
    own, local = hardware(sandbox.ns), "fe80::66"
    in_gateway(lab, "sysctl", "-qw", f"net.ipv6.conf.{sandbox.iface}.accept_ra=2",
               f"net.ipv6.conf.{sandbox.iface}.accept_redirects=1")
    redirect = frames.ip("fd66::1") + frames.ip(ORIGIN6)
    with refused(lab, 6):
        for src in (sandbox.v6, local):
            send(sandbox, ether(own, ALL_NODES_MAC, IP6, router_advertisement(src, own)),
                 ether(own, ALL_NODES_MAC, IP6, frames.discovery(src, ALL_NODES, 137, bytes(4) + redirect)),
                 ether(own, ALL_NODES_MAC, IP6, frames.discovery(src, ALL_NODES, 130,
                                                                 bytes(4) + frames.ip("ff02::1"), hops=1)))
    time.sleep(0.2)
    assert "fd66" not in in_gateway(lab, "ip", "-6", "addr") + in_gateway(lab, "ip", "-6", "route")


# -- what else a frame can be --------------------------------------------------------

def odd_frames(sandbox, gateway_mac):
    own, v4, v6 = hardware(sandbox.ns), sandbox.v4, sandbox.v6
    for kind, name in ((0x83, "LSRR"), (0x89, "SSRR"), (0x07, "record route")):
        options = bytes([kind, 11, 4]) + frames.ip(sandbox.gw4) + bytes(4) + b"\0"
        yield name, ether(own, gateway_mac, IP4, frames.v4(
            v4, ORIGIN4, 6, frames.tcp_syn(v4, ORIGIN4, 443), options=options))
    for kind in (0, 2, 4):
        rh = bytes([6, 2, kind, 1, 0, 0, 0, 0]) + frames.ip(ORIGIN6)
        yield f"routing header {kind}", ether(own, gateway_mac, IP6, frames.v6(
            v6, sandbox.gw6, 43, rh + frames.tcp_syn(v6, ORIGIN6, 443)))
    for tag in (0, 5):
        yield f"VLAN {tag}", ether(own, gateway_mac, IP4, frames.v4(
            v4, ORIGIN4, 6, frames.tcp_syn(v4, ORIGIN4, 443)), tag=tag)
    yield "802.3", ether(own, gateway_mac, 46, bytes([0x42, 0x42, 3]) + bytes(43))
    for kind in (0x8847, 0x8863, 0x8864, 0x88cc, 0x0805):
        yield hex(kind), ether(own, gateway_mac, kind, MARK + bytes(40))
    offer = frames.udp(v4, "255.255.255.255", 67, 68, MARK)
    yield "DHCP answer", ether(own, BROADCAST, IP4, frames.v4(v4, "255.255.255.255", 17, offer))
    yield "DHCPv6 answer", ether(own, ALL_NODES_MAC, IP6, frames.v6(
        v6, ALL_NODES, 17, frames.udp(v6, ALL_NODES, 547, 546, MARK)))
    yield "DHCP question", ether(own, BROADCAST, IP4, frames.v4(
        "0.0.0.0", "255.255.255.255", 17, frames.udp("0.0.0.0", "255.255.255.255", 68, 67, MARK)))
    yield "IGMP", ether(own, BROADCAST, IP4, frames.v4(v4, "224.0.0.22", 2, bytes([0x22, 0]) + bytes(6)))


def test_odd_frames(lab, sandbox, gateway_mac, origin_seen):
    for what, frame in odd_frames(sandbox, gateway_mac):
        before = dropped(lab)
        send(sandbox, frame)
        time.sleep(0.05)
        assert dropped(lab) > before, what
    assert origin_seen() == []


# -- plugged without being registered, registered before being plugged ----------------

@contextlib.contextmanager
def veth(lab, name, number):
    ns = f"{lab.prefix}x{number}"
    run("ip", "netns", "add", ns)
    try:
        run("ip", "link", "add", "e0", "netns", ns, "type", "veth", "peer", "name", name, "netns", lab.gw)
        for where, dev, a4, a6 in ((ns, "e0", f"10.211.{number}.2", f"fd11:{number}::2"),
                                   (lab.gw, name, f"10.211.{number}.1", f"fd11:{number}::1")):
            run("ip", "-n", where, "addr", "add", f"{a4}/24", "dev", dev)
            run("ip", "-n", where, "addr", "add", f"{a6}/64", "dev", dev, "nodad")
            run("ip", "-n", where, "link", "set", dev, "up")
        run("ip", "-n", ns, "route", "add", "default", "via", f"10.211.{number}.1")
        run("ip", "-n", ns, "-6", "route", "add", "default", "via", f"fd11:{number}::1")
        s = lab.sandboxes[0].__class__(lab, number)
        s.ns, s.iface = ns, name
        yield s
    finally:
        run("ip", "-n", lab.gw, "link", "del", name, check=False)  # at once, unlike its namespace
        run("ip", "netns", "del", ns, check=False)


def test_unregistered_veth(lab, origin_seen):
    name = f"sp-{os.getpid() % 10000}x77"
    with veth(lab, name, 77) as stranger:
        for host in (ORIGIN4, f"[{ORIGIN6}]"):
            r = stranger.run("curl", "-sSg", "--max-time", "2", "-H", "Host: plain.lab.test",
                             f"http://{host}/stranger")
            assert r.returncode in (7, 52, 56), (r.returncode, r.stderr)  # reset, at once
            lab.record(kind="connect", reason="unknown_sandbox")
        r = stranger.run("ping", "-c1", "-W1", stranger.gw4)
        assert r.returncode != 0
        assert stranger.gw4 in run("ip", "-n", stranger.ns, "neigh").stdout  # it was resolved
    assert origin_seen() == []


def test_registered_before_it_is_plugged(lab):
    name = f"sp-{os.getpid() % 10000}x78"
    lab.admin.call("PUT", "/v1/sandboxes/sandbox-late", {
        "interface": name, "addresses": ["10.211.78.2", "fd11:78::2"]}, expect=201)
    try:
        for _ in range(2):  # the second time the interface comes again
            with veth(lab, name, 78) as late:
                own, gw = hardware(late.ns), hardware(lab.gw, name)
                lab.wait(lambda: works(late) is True, 3, "the late sandbox to work")
                with refused(lab):
                    send(late, ether(own, gw, IP4, frames.v4(
                        "10.211.78.9", ORIGIN4, 6, frames.tcp_syn("10.211.78.9", ORIGIN4, 443))))
    finally:
        lab.admin.call("DELETE", "/v1/sandboxes/sandbox-late", expect=204)
    lab.wait(lambda: name not in "".join(tables(lab).values()), 5, "its lock to be dropped")


def test_first_packet_meets_the_lock(lab):
    """From the moment of plugging a foreign source is sent without pause: the rules behind
    the device hold until the chain is there."""
    name = f"sp-{os.getpid() % 10000}x79"
    lab.admin.call("PUT", "/v1/sandboxes/sandbox-first", {
        "interface": name, "addresses": ["10.211.79.2"]}, expect=201)
    ns = f"{lab.prefix}x79"
    before = len(lab.records())
    run("ip", "netns", "add", ns)
    try:
        run("ip", "link", "add", "e0", "netns", ns, "type", "veth", "peer", "name", "unplugged", "netns", lab.gw)
        run("ip", "-n", ns, "link", "set", "e0", "up")
        gw = hardware(lab.gw, "unplugged")
        src = "10.211.79.66"
        frame = ether(hardware(ns), gw, IP4, frames.v4(src, ORIGIN4, 6, frames.tcp_syn(src, ORIGIN4, 443)))
        with blast(ns, frame):
            in_gateway(lab, "ip", "addr", "add", "10.211.79.1/24", "dev", "unplugged")
            in_gateway(lab, "ip", "link", "set", "unplugged", "name", name, "up")
            time.sleep(0.5)
        assert {r["kind"] for r in lab.records()[before:] if src in r.get("client", "")} == {"packet"}
        assert src not in neighbours(lab, name)
    finally:
        run("ip", "netns", "del", ns, check=False)
        lab.admin.call("DELETE", "/v1/sandboxes/sandbox-first", expect=204)


def test_what_the_status_says(lab, sandbox):
    listed = {s["id"]: s for s in lab.admin.get("/v1/sandboxes")["sandboxes"]}
    assert listed[sandbox.id]["lockedAt"] == sandbox.iface
    value = lab.admin.call("PUT", "/v1/sandboxes/sandbox-any", {"addresses": ["10.200.0.1"]})[1]
    lab.admin.call("DELETE", "/v1/sandboxes/sandbox-any", expect=204)
    assert value["lockedAt"] is None and "no interface" in value["lockNote"]
    status, value = lab.admin.call("PUT", "/v1/sandboxes/sandbox-eth", {
        "interface": "go", "addresses": ["10.200.0.1"]})
    assert status == 400 and "sandboxInterfaces" in value["message"]
    for mac in ("01:00:5e:00:00:01", "02:00", "zz:00:00:00:00:00", ZERO_MAC, "020000000000"):
        status, value = lab.admin.call("PUT", "/v1/sandboxes/sandbox-mac", {
            "interface": "sp-none", "addresses": ["10.200.0.1"], "mac": mac})
        assert status == 400 and "mac" in value["message"], mac


# -- hands, crashes ------------------------------------------------------------------

def forge_one(lab, sandbox):
    own, gw = hardware(sandbox.ns), hardware(lab.gw, sandbox.iface)
    send(sandbox, ether(own, gw, IP4, frames.v4(
        "10.211.1.77", ORIGIN4, 6, frames.tcp_syn("10.211.1.77", ORIGIN4, 443))))


@pytest.mark.parametrize("hand", ["delete table netdev sallyport_lock", "delete table inet sallyport_lock",
                                  "delete table bridge sallyport_lock", "flush ruleset",
                                  "flush set netdev sallyport_lock own4",
                                  "flush chain netdev sallyport_lock lock"])
def test_rules_changed_by_hand_come_back(lab, sandbox, hand):
    def words(text):
        """Without what packets change: counters, and who was told of lately."""
        text = re.sub(r"\s+packets \d+ bytes \d+", "", text)
        text = re.sub(r"\tset tell_\w+ \{.*?\n\t\}", "", text, flags=re.DOTALL)
        return sorted(re.split(r"[\s,]+", text))

    before = {f: words(t) for f, t in tables(lab).items()}
    in_gateway(lab, "nft", hand)

    def same():
        now = {}
        for family in before:
            r = run("ip", "netns", "exec", lab.gw, "nft", "-s", "list", "table", family,
                    "sallyport_lock", check=False)
            now[family] = words(r.stdout)
        return now == before

    lab.wait(same, 3, "the rules to come back")
    lab.wait(lambda: lab.admin.get("/v1/status")["rulesInstalled"], 3, "the status to say so")
    with refused(lab):
        forge_one(lab, sandbox)


@pytest.mark.parametrize("role", ["control", "gateway", "vault"])
def test_lock_outlives_a_role(lab, sandbox, role):
    pid = lab.role_pid(role)
    os.kill(pid, signal.SIGKILL)
    with refused(lab, 3):
        for _ in range(3):
            forge_one(lab, sandbox)
    lab.wait(lambda: new_pid(lab, role, pid), 15, "the role to come back")
    lab.wait(lambda: works(sandbox) is True, 10, "service")
    with refused(lab):
        forge_one(lab, sandbox)


def new_pid(lab, role, old):
    try:
        return lab.role_pid(role) != old and lab.admin.get("/v1/status")["ready"]
    except (OSError, KeyError, AssertionError):
        return False


def test_lock_outlives_the_supervisor(lab, sandbox):
    """Killed, the rules of its life stay; the next life takes them over, and what was
    deregistered meanwhile is gone when everything was put again."""
    locked = devices(lab)
    assert sandbox.iface in locked
    lab.daemon.kill()
    lab.daemon.wait()
    lab.daemon = None
    with refused(lab, 3):
        for _ in range(3):
            forge_one(lab, sandbox)
    in_gateway(lab, "nft", "add element netdev sallyport_lock own4 { sp-gone . 192.0.2.1 }")
    lab.start()
    with refused(lab):
        forge_one(lab, sandbox)
    now = tables(lab)["netdev"]
    assert devices(lab) == locked and "sp-gone" not in now


def test_lock_outlives_an_orderly_stop(lab, sandbox):
    assert lab.stop() == 0
    with refused(lab):
        forge_one(lab, sandbox)
    lab.start()


# -- sandboxes at one bridge -----------------------------------------------------------

@pytest.fixture(scope="module")
def bridge(lab):
    name = f"sp-{os.getpid() % 10000}br"
    g = lab.gw
    run("ip", "-n", g, "link", "add", name, "type", "bridge", "stp_state", "0")
    run("ip", "-n", g, "addr", "add", "10.219.0.1/24", "dev", name)
    run("ip", "-n", g, "addr", "add", "fd19::1/64", "dev", name, "nodad")
    run("ip", "-n", g, "link", "set", name, "up")
    ports = [Port(lab, name, n) for n in (1, 2, 3)]
    for p in ports[:2]:
        p.register()
    yield ports
    for p in ports:
        run("ip", "netns", "del", p.ns, check=False)
        lab.admin.call("DELETE", f"/v1/sandboxes/{p.id}")
    run("ip", "-n", g, "link", "del", name, check=False)


@pytest.fixture(params=[0, 1], ids=["nf-call-0", "nf-call-1"])
def nf_call(lab, bridge, request):
    in_gateway(lab, "sysctl", "-qw", *(f"net.bridge.bridge-nf-call-{t}={request.param}"
                                       for t in ("iptables", "ip6tables", "arptables")))
    yield request.param
    in_gateway(lab, "sysctl", "-qw", *(f"net.bridge.bridge-nf-call-{t}=0"
                                       for t in ("iptables", "ip6tables", "arptables")))


@pytest.fixture
def heard(lab, bridge, tmp_path):
    """What the second sandbox of the bridge hears of the mark."""
    out, ready = tmp_path / "heard", open(tmp_path / "ready", "wb")
    p = subprocess.Popen(["ip", "netns", "exec", bridge[1].ns, "/usr/bin/python3",
                          str(HERE / "sniff.py"), str(out), MARK.decode()], stdout=ready)
    lab.wait(lambda: (tmp_path / "ready").read_text(), 5, "the sniffer")
    yield lambda: out.read_text() if out.exists() else ""
    p.terminate()
    p.wait()


def test_bridge_sandboxes_work(lab, bridge, nf_call):
    for p in bridge[:2]:
        assert works(p) is True
        value = lab.admin.get(f"/v1/sandboxes/{p.id}")
        assert value["lockedAt"] == p.port and "lockNote" not in value


def test_bridge_neighbour_is_out_of_reach(lab, bridge, nf_call, heard):
    a, b = bridge[:2]
    own, theirs = hardware(a.ns), hardware(b.ns)
    bridge_mac = hardware(lab.gw, a.bridge)
    for dst in (theirs, BROADCAST, bridge_mac):
        for src, to in ((a.v4, b.v4), (a.v6, b.v6)):
            send(a, ether(own, dst, frames.kind_of(src), frames.packet(
                src, to, 17, frames.udp(src, to, 5000, 5000, MARK))))
    for to in (a.v4, a.v6):
        send(a, ether(own, ALL_NODES_MAC, frames.kind_of(to), frames.packet(
            to, ALL_NODES if ":" in to else "224.0.0.1", 17,
            frames.udp(to, ALL_NODES if ":" in to else "224.0.0.1", 5000, 5000, MARK))))
    run("ip", "-n", a.ns, "neigh", "replace", b.v4, "lladdr", theirs, "dev", "e0")
    run("ip", "-n", a.ns, "neigh", "replace", b.v6, "lladdr", theirs, "dev", "e0")
    for to in (b.v4, b.v6):
        assert a.run("ping", "-c1", "-W1", "-p", MARK.hex()[:32], to).returncode != 0
    run("ip", "-n", a.ns, "neigh", "flush", "dev", "e0")
    time.sleep(0.2)
    assert heard() == ""
    # the record says whose it was by the port, not by what it says of itself
    if nf_call:  # the packets of the bridge met policy before its own rules
        assert lab.record(kind="flow", sandbox=a.id)["verdict"] == "deny"
        assert not lab.records(kind="flow", verdict="allow")
    reason = "group" if nf_call else "isolated"
    assert lab.record(kind="packet", reason=reason, sandbox=a.id)["interface"] == a.port


def test_unlocked_bridge_would_be_heard(lab, bridge, heard):
    """The sniffer is no deaf one: in the moment without the rules the neighbour hears."""
    a, b = bridge[:2]
    frame = ether(hardware(a.ns), hardware(b.ns), IP4, frames.v4(
        a.v4, b.v4, 17, frames.udp(a.v4, b.v4, 5000, 5000, MARK)))
    with blast(a.ns, frame):
        time.sleep(0.3)
        assert heard() == ""
        for _ in range(20):
            if not heard():
                in_gateway(lab, "nft", "flush", "chain", "bridge", "sallyport_lock", "forward")
                time.sleep(0.3)
    assert heard()


@pytest.mark.parametrize("who", [0, 2], ids=["registered", "unregistered"])
def test_bridge_neighbour_cannot_be_played(lab, bridge, nf_call, who):
    """Neither a registered port nor a port that nobody registered may be the neighbour."""
    a, b = bridge[who], bridge[1]
    own, theirs = hardware(a.ns), hardware(b.ns)
    bridge_mac = hardware(lab.gw, a.bridge)
    assert works(b) is True
    time.sleep(0.1)  # records of what is allowed wait a little
    mark, before = lab.audit_path.stat().st_size, len(lab.records())
    in_gateway(lab, "sysctl", "-qw", f"net.ipv4.conf.{a.bridge}.arp_accept=1")
    with refused(lab, 6):
        for mac in (own, theirs):
            send(a, ether(mac, BROADCAST, ARP, frames.arp(2, mac, b.v4, BROADCAST, a.gw4)),
                 ether(mac, BROADCAST, ARP, frames.arp(1, mac, b.v4, ZERO_MAC, a.gw4)),
                 ether(mac, bridge_mac, IP6, frames.advertise(b.v6, a.gw6, b.v6, option(2, mac))),
                 ether(mac, bridge_mac, IP6, frames.solicit(b.v6, a.gw6, a.gw6, option(1, mac))))
            for src, to in ((b.v4, ORIGIN4), (b.v6, ORIGIN6)):
                send(a, ether(mac, bridge_mac, frames.kind_of(src), frames.packet(
                    src, to, 6, frames.tcp_syn(src, to, 443))))
    time.sleep(0.1)
    table = neighbours(lab, a.bridge)
    for address in (b.v4, b.v6):
        assert f"{address} lladdr {own}" not in table, table
    assert b.id not in lab.audit_text()[mark:]
    said = {(r["reason"], r.get("sandbox")) for r in lab.records()[before:] if r["kind"] == "packet"}
    if who == 0:
        assert {("mac", a.id), ("neighbour", a.id), ("source", a.id)} <= said, said
    else:
        assert ("source", None) in said, said
    fdb = [line for line in in_gateway(lab, "bridge", "fdb", "show", "br", a.bridge).splitlines()
           if line.startswith(theirs)]
    assert fdb and all(b.port in line for line in fdb), fdb
    assert works(b) is True


def test_bridge_neighbour_does_not_hide_what_one_tries(lab, bridge, nf_call):
    """The kernel tells of so many packets a second: of each sandbox, not of a bridge."""
    a, b = bridge[:2]
    mac = hardware(lab.gw, a.bridge)
    frame = ether(hardware(a.ns), mac, IP4, frames.v4(a.v4, ORIGIN4, 47, b"flood"))
    own = ether(hardware(b.ns), mac, IP4, frames.v4(b.v4, ORIGIN4, 47, b"once"))
    with blast(a.ns, frame):
        lab.record(kind="packet", reason="protocol", sandbox=a.id)
        time.sleep(1)  # the burst is used up
        for _ in range(3):
            send(b, own)
            time.sleep(0.1)
        assert lab.record(kind="packet", reason="protocol", sandbox=b.id)["client"] == b.v4
    assert len(lab.records(kind="packet", reason="protocol", sandbox=a.id)) < 60


def test_bridge_without_port_is_said(lab, bridge, nf_call):
    """It is locked at every port that is nobody's, and no other sandbox notices."""
    a, b, c = bridge
    value = lab.admin.call("PUT", f"/v1/sandboxes/{c.id}", {
        "interface": c.iface, "addresses": [c.v4, c.v6]}, expect=201)[1]
    try:
        assert value["lockedAt"] == c.iface and "no port" in value["lockNote"]
        for p in bridge:
            assert works(p) is True, p.id
        mac, own = hardware(lab.gw, c.bridge), hardware(c.ns)
        for who, source in ((c, "10.219.0.99"), (c, a.v4), (a, c.v4), (a, b.v4)):
            with refused(lab):
                send(who, ether(hardware(who.ns), mac, IP4, frames.v4(
                    source, ORIGIN4, 6, frames.tcp_syn(source, ORIGIN4, 443))))
        with refused(lab):
            send(c, ether(own, BROADCAST, ARP, frames.arp(2, own, a.v4, BROADCAST, a.gw4)))
        # a port that it is at for now gets an owner, and loses him
        c.register()
        assert works(c) is True and "lockNote" not in lab.admin.get(f"/v1/sandboxes/{c.id}")
        lab.admin.call("PUT", f"/v1/sandboxes/{c.id}", {
            "interface": c.iface, "addresses": [c.v4, c.v6]}, expect=200)
        assert works(c) is True and works(b) is True
        # after a restart of the daemon, and with the port plugged anew
        assert lab.stop() == 0
        lab.start()
        assert works(c) is True and works(a) is True
        in_gateway(lab, "ip", "link", "set", c.port, "nomaster")
        in_gateway(lab, "ip", "link", "set", c.port, "master", c.bridge)
        assert works(c) is True
    finally:
        lab.admin.call("DELETE", f"/v1/sandboxes/{c.id}", expect=204)
