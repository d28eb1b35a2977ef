# SPDX-License-Identifier: Apache-2.0
"""UDP and ICMP: decided at the first packet, forwarded by the kernel, ended by a change."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from conftest import open_lab
from lab import BIN, GATEWAY_O4, ORIGIN4, SOURCE, run

HERE = Path(__file__).parent
ASK = ["/usr/bin/python3", HERE / "udp_ask.py"]
# addresses that count as public, in the origin's namespace only
V4, V6 = "11.22.33.44", "2a0a:1::44"
ELSEWHERE = "11.22.33.45"
PORTS = ["7000", "7001", "443", "853"]
SOON_MS = 1000  # whatever the load; alone it is a few


def rule(action, target, **more):
    return {"action": action, "target": target, **more}


BOTH = [rule("allow", V4, protocol="udp"), rule("allow", V6, protocol="udp")]


def prepare(lab):
    for address in (V4, V6, ELSEWHERE):
        family = ["-6"] if ":" in address else []
        run("ip", "-n", lab.org, *family, "addr", "add", address, "dev", "o0",
            *(["nodad"] if family else []))
        run("ip", "-n", lab.gw, *family, "route", "add", address,
            "via", "fd12:2::2" if family else ORIGIN4)
    lab.echo_log = lab.tmp / "echo.log"
    for address in (V4, V6, ELSEWHERE, ORIGIN4):
        lab.in_origin("/usr/bin/python3", HERE / "udp_echo.py", lab.echo_log, address, *PORTS)
    lab.wait(lambda: lab.echo_log.exists() and lab.echo_log.read_text().count("ready") == 4, 10,
             "the echo servers")


@pytest.fixture(scope="module")
def lab():
    with open_lab(tag="q", prepare=prepare) as lab:
        yield lab


@pytest.fixture(autouse=True)
def rested(lab):
    """The kernel answers one destination with few ICMP errors a second."""
    run("ip", "netns", "exec", lab.gw, "sysctl", "-qw", "net.ipv4.icmp_ratelimit=0",
        "net.ipv6.icmp.ratelimit=0")


def ask(sandbox, address, port=7000, *more):
    """What came of a datagram, and after how many ms."""
    said, ms = sandbox.run(*ASK, address, port, *more).stdout.rsplit(maxsplit=1)
    return said, int(ms)


REFUSED = {V4: "EHOSTUNREACH", V6: "EACCES"}


def assert_refused(sandbox, address, port=7000):
    said, ms = ask(sandbox, address, port)
    assert said == ("EACCES" if ":" in address else "EHOSTUNREACH"), said
    assert ms < SOON_MS, ms
    return ms


class Flow:
    """One connected socket in a sandbox that asks whenever told to."""

    def __init__(self, sandbox, address, port=7000):
        self.process = sandbox.popen(*ASK, "-i", address, port, stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)

    def ask(self, text="again"):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rsplit(maxsplit=1)[0]

    def __enter__(self):
        assert self.ask("first") == "echo first"
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(10)


def heard(lab, text):
    return [line for line in lab.echo_log.read_text().splitlines() if line.endswith(text)]


def queue_counters(lab):
    return lab.admin.get("/v1/status")["gateway"]["queue"]


def in_gateway(lab, *cmd, **kw):
    return run("ip", "netns", "exec", lab.gw, *cmd, **kw)


# -- what policy says ---------------------------------------------------------


@pytest.mark.parametrize("address", [V4, V6])
def test_allowed_udp_goes_both_ways(lab, sandbox, address):
    sandbox = lab.sandboxes[0]
    with lab.policy(BOTH):
        with Flow(sandbox, address) as flow:
            for i in range(20):
                assert flow.ask(f"n{i}") == f"echo n{i}"
        record = lab.record(kind="flow", verdict="allow")
    assert record["sandbox"] == sandbox.id and record["scheme"] == "udp"
    assert record["rule"] == f"allow {address} udp" and record["port"] == 7000
    # it left under the node's address, as TCP does
    senders = {line.split()[2] for line in heard(lab, "n7")}
    assert senders <= {GATEWAY_O4, "fd12:2::1"}


@pytest.mark.parametrize("address", [V4, V6])
def test_denied_udp_is_refused_at_once(lab, address):
    sandbox = lab.sandboxes[0]
    took = sorted(assert_refused(sandbox, address) for _ in range(5))
    print(f"refused after {took} ms")
    record = lab.record(kind="flow", verdict="deny")
    assert record["reason"] == "policy" and record["sandbox"] == sandbox.id
    assert not heard(lab, " hello")


def test_large_datagrams_are_fragmented_and_arrive(lab):
    with lab.policy(BOTH):
        text = "x" * 6000
        assert ask(lab.sandboxes[0], V4, 7000, text)[0] == "echo " + text
        assert ask(lab.sandboxes[0], V6, 7000, text)[0] == "echo " + text


def test_a_name_rule_without_protocol_opens_no_udp(lab):
    with lab.policy([rule("allow", V4), rule("allow", V6)]):
        assert_refused(lab.sandboxes[0], V4)
        assert_refused(lab.sandboxes[0], V6)


@pytest.mark.parametrize("port", [443, 853])
def test_quic_needs_udp_by_name(lab, port):
    """So that a browser is told within milliseconds to use TCP."""
    sandbox = lab.sandboxes[0]
    with lab.policy([], defaultAction="allow"):
        assert_refused(sandbox, V4, port)
        assert_refused(sandbox, V6, port)
        assert ask(sandbox, V4, 7000)[0] == "echo hello"
    with lab.policy([rule("allow", V4, protocol="any")]):
        assert_refused(sandbox, V4, port)
    if port == 443:  # 853 is a foreign resolver's, which is another story
        with lab.policy([rule("allow", V4, protocol="udp")]):
            assert ask(sandbox, V4, port)[0] == "echo hello"


QUIC_THEN_TCP = """
import socket, ssl, struct, sys, time
began = time.monotonic()
name, address = sys.argv[1:]
quic = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
quic.connect((address, 443))
quic.settimeout(5)
initial = b"\\xc3" + struct.pack("!I", 1) + b"\\x08" + bytes(8) + b"\\x00\\x00\\x44\\x9e"
quic.send(initial.ljust(1200, b"\\0"))
try:
    quic.recv(2048)
    sys.exit("an answer over QUIC")
except TimeoutError:
    sys.exit("silence")
except OSError as e:
    refused = time.monotonic() - began
context = ssl.create_default_context()
with socket.create_connection((address, 443), timeout=10) as tcp:
    with context.wrap_socket(tcp, server_hostname=name) as tls:
        tls.sendall(b"GET /after-quic HTTP/1.1\\r\\nHost: " + name.encode()
                    + b"\\r\\nConnection: close\\r\\n\\r\\n")
        print(tls.recv(12).decode(), f"{refused * 1000:.1f} {(time.monotonic() - began) * 1000:.1f}")
"""


def test_who_tries_quic_first_is_on_tcp_at_once(lab):
    """As a browser does: an Initial to UDP 443, and TLS over TCP when that is refused."""
    with lab.policy([rule("allow", "api.lab.test")]):
        r = lab.sandboxes[0].python(QUIC_THEN_TCP, "api.lab.test", ORIGIN4)
    assert r.stdout.startswith("HTTP/1.1 200"), (r.stdout, r.stderr)
    refused_ms, all_ms = (float(x) for x in r.stdout.split()[2:])
    print(f"refused after {refused_ms} ms, a reply over TCP after {all_ms} ms")
    assert refused_ms < SOON_MS and all_ms < 3 * SOON_MS


@pytest.mark.skipif(not (shutil.which("gtlsclient") and shutil.which("gtlsserver")),
                    reason="no QUIC client and server (ngtcp2) here")
def test_a_real_quic_client_needs_the_rule(lab, tmp_path):
    crt, key = lab.leaf("quic", "quic.lab.test", V4)
    tmp_path.chmod(0o755)
    pages, got = tmp_path / "pages", tmp_path / "got"
    for folder in (pages, got):
        folder.mkdir()
        folder.chmod(0o777)
    (pages / "page").write_text("over QUIC")
    server = lab.in_origin("gtlsserver", "-q", "-d", pages, V4, "4433", key, crt,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def fetch(seconds):
        return lab.sandboxes[0].run("timeout", seconds, "gtlsclient", "-q",
                                    "--exit-on-all-streams-close", "--download", got, V4, "4433",
                                    "https://quic.lab.test/page")
    with lab.policy(BOTH):
        lab.wait(lambda: fetch("5").returncode == 0 and (got / "page").exists(), 20, "the page")
        assert (got / "page").read_text() == "over QUIC"
    (got / "page").unlink()
    with lab.policy([]):
        assert fetch("2").returncode != 0 and not (got / "page").exists()
    server.terminate()


@pytest.mark.skipif(not (shutil.which("gtlsclient") and shutil.which("gtlsserver")),
                    reason="no QUIC client and server (ngtcp2) here")
def test_dns_over_quic_is_refused_and_recorded(lab, tmp_path):
    """RFC 9250: a real handshake of QUIC to UDP 853. Whatever allows UDP, only a rule with
    exactly this address lets it pass."""
    crt, key = lab.leaf("doq", "doq.lab.test", ELSEWHERE)
    tmp_path.chmod(0o755)
    pages, got = tmp_path / "pages", tmp_path / "got"
    for folder in (pages, got):
        folder.mkdir()
        folder.chmod(0o777)
    (pages / "dns-query").write_text("an answer")
    run("ip", "-n", lab.org, "addr", "add", "11.22.33.53", "dev", "o0")
    run("ip", "-n", lab.gw, "route", "add", "11.22.33.53", "via", ORIGIN4)
    server = lab.in_origin("gtlsserver", "-q", "-d", pages, "11.22.33.53", "853", key, crt,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def fetch(seconds):
        began = time.monotonic()
        r = lab.sandboxes[0].run("timeout", seconds, "gtlsclient", "-q", "--exit-on-all-streams-close",
                                 "--download", got, "11.22.33.53", "853", "https://doq.lab.test/dns-query")
        return r.returncode == 0 and (got / "dns-query").exists(), time.monotonic() - began
    try:
        with lab.policy([rule("allow", "11.22.33.53", protocol="udp")]):
            lab.wait(lambda: fetch("5")[0], 20, "the answer: the way is one")
        (got / "dns-query").unlink()
        for more in ({"defaultAction": "allow"}, {}):
            for target, protocol in (("11.22.33.0/24", "udp"), ("0.0.0.0/0", "any")):
                time.sleep(1)  # records are limited
                before = len(lab.records(kind="flow", original="11.22.33.53:853", verdict="deny"))
                with lab.policy([rule("allow", target, protocol=protocol)], **more):
                    assert fetch("2")[0] is False
                assert len(lab.records(kind="flow", original="11.22.33.53:853", verdict="deny")) > before
        records = lab.records(kind="flow", original="11.22.33.53:853", verdict="deny")
        assert {r["reason"] for r in records} <= {"policy", "cut"}, records
        assert [r for r in records if "resolver" in r["decidedBy"]], records
        assert not (got / "dns-query").exists()
    finally:
        server.terminate()


@pytest.mark.parametrize("address", [V4, V6])
def test_echo_requests_need_icmp(lab, address):
    sandbox = lab.sandboxes[0]
    ping = ["ping", "-c", "2", "-i", "0.2", "-W", "2", address]
    with lab.policy([rule("allow", address, protocol="udp")]):
        began = time.monotonic()
        r = sandbox.run(*ping)
        assert r.returncode == 1 and " 0 received, +2 errors" in r.stdout, r.stdout
        assert "prohibited" in r.stdout or "Packet filtered" in r.stdout
        assert time.monotonic() - began < 2
    with lab.policy([rule("allow", address, protocol="icmp")]):
        r = sandbox.run(*ping)
        assert r.returncode == 0 and "2 received" in r.stdout, r.stdout
        assert_refused(sandbox, address)
    assert lab.record(kind="flow", scheme="icmp", verdict="allow")["original"] == address


def test_errors_of_an_allowed_flow_come_back(lab):
    """A closed port behind the fence is ECONNREFUSED, as without one."""
    sandbox = lab.sandboxes[0]
    with lab.policy(BOTH):
        assert ask(sandbox, V4, 7999)[0] == "ECONNREFUSED"
        assert ask(sandbox, V6, 7999)[0] == "ECONNREFUSED"



# An ICMP error to a.target about a packet that never was; both of its ends are
# (address, port). The kernel takes it for one of that flow, whoever sent it;
# what it carries is the mark.
SEND_ERROR = """
import json, sys
sys.path.insert(0, sys.argv[1])
from attack import Attack, icmp, icmp6
a = Attack(json.loads(sys.argv[2]))
(source, port), (to, to_port) = a.about
about = a.udp_packet(to_port, a.mark * 4, source=source, to=to)
about = about.replace((40000).to_bytes(2, "big"), port.to_bytes(2, "big"), 1)
if a.family == 6:
    a.frame(a.packet(58, icmp6(1, 4, bytes(4) + about, a.own, a.target)))
else:
    a.frame(a.packet(1, icmp(3, 3, bytes(4) + about)))
"""
HEAR = """
import socket, sys, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.settimeout(0.1)
print("ready", flush=True)
heard, end = 0, time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    try:
        data, where = s.recvfrom(65536)
        heard += sys.argv[1].encode() in data and where[2] != socket.PACKET_OUTGOING
    except TimeoutError:
        pass
print(heard)
"""


@contextlib.contextmanager
def ear(ns, text):
    """A list that has, afterwards, how many frames with the text came in."""
    p = subprocess.Popen(["ip", "netns", "exec", ns, "/usr/bin/python3", "-c", HEAR, text, "2"],
                         stdout=subprocess.PIPE, text=True)
    found = []
    try:
        assert p.stdout.readline() == "ready\n"
        yield found
        found.append(int(p.stdout.readline()))
    finally:
        p.kill()
        p.wait()


def send_error(lab, sender, target, *about):
    six = ":" in target
    mac, gateway_mac = (json.loads(run("ip", "-n", ns, "-j", "link", "show", "dev", dev).stdout)[0]["address"]
                        .replace(":", "") for ns, dev in ((sender.ns, "e0"), (lab.gw, sender.iface)))
    facts = {"family": 6 if six else 4, "mark": "sp-error", "target": target, "about": about,
             "own": sender.v6 if six else sender.v4, "mac": mac, "gateway_mac": gateway_mac, "interface": "e0"}
    sender.run("/usr/bin/python3", "-c", SEND_ERROR, HERE / "escape", json.dumps(facts), check=True)


@pytest.mark.parametrize("address", [V4, V6])
@pytest.mark.parametrize("number", [0, 1])
def test_an_error_about_a_flow_carries_nothing(lab, address, number):
    """Neither out, where only the other may go, nor to the other."""
    box, other = lab.sandboxes[0], lab.sandboxes[number]
    own, gateway = (other.v6, "fd12:2::1") if ":" in address else (other.v4, GATEWAY_O4)
    with lab.policy(BOTH, sandboxes={"ids": [other.id]}):
        with ear(lab.org, "sp-error") as outside, ear(other.ns, "sp-error") as inside, \
                Flow(other, address) as flow:
            assert flow.ask("sp-error-itself") == "echo sp-error-itself"  # the ears hear
            shown = other.run("ss", "-Hun", "dst", f"[{address}]", check=True).stdout.split()[2]
            port, far = int(shown.rpartition(":")[2]), (address, 7000)
            send_error(lab, box, address, far, (own, port))
            send_error(lab, box, gateway, (gateway, port), far)
            assert flow.ask() == "echo again"
    assert (outside, inside) == ([1], [1])
    assert lab.records(kind="packet", reason="no_flow", sandbox=box.id)


RESOLVE = "import socket,sys; print(socket.getaddrinfo(sys.argv[1], 7000, socket.AF_INET)[0][4][0])"


def test_a_name_counts_by_what_dns_told_this_sandbox(lab):
    one, two = lab.sandboxes
    zone = lab.tmp / "zone.json"
    before = zone.read_text()
    zone.write_text(before[:-1] + f', "udp.lab.test": {{"A": ["{V4}"]}}}}')
    try:
        with lab.policy([rule("allow", "udp.lab.test", protocol="udp", ports=[7000])]):
            assert_refused(one, V4)
            assert one.python(RESOLVE, "udp.lab.test").stdout.strip() == V4
            assert ask(one, V4)[0] == "echo hello"
            assert_refused(one, V4, 7001)  # of the name, but another port
            assert_refused(one, ELSEWHERE)
            assert_refused(two, V4)  # whom DNS told nothing
            record = lab.record(kind="flow", verdict="allow")
            assert record["host"] == "udp.lab.test" and record["hostFrom"] == "dns"
    finally:
        zone.write_text(before)


def test_the_node_and_private_addresses_are_guarded(lab):
    sandbox = lab.sandboxes[0]
    with lab.policy([], defaultAction="allow"):
        for address in (sandbox.gw4, GATEWAY_O4, ORIGIN4, lab.sandboxes[1].v4):
            assert_refused(sandbox, address)
            assert lab.record(kind="flow", verdict="deny")["reason"] == "address"
        assert ask(sandbox, V4)[0] == "echo hello"
    with lab.policy([rule("allow", f"{ORIGIN4}/32", protocol="udp")]):
        assert ask(sandbox, ORIGIN4)[0] == "echo hello"
    with lab.policy([rule("allow", "0.0.0.0/0", protocol="udp")]):
        assert_refused(sandbox, sandbox.gw4)  # its own: by no rule
        assert_refused(sandbox, ORIGIN4)  # every address is not this one
        assert ask(sandbox, V4)[0] == "echo hello"


def test_sandboxes_do_not_reach_each_other(lab):
    one, two = lab.sandboxes
    listener = two.popen("/usr/bin/python3", HERE / "udp_echo.py", lab.tmp / "two.log", two.v4,
                         "7000")
    try:
        lab.wait(lambda: (lab.tmp / "two.log").exists(), 10, "the listener")
        with lab.policy([rule("allow", "10.0.0.0/8", protocol="udp")]):
            said, _ = ask(one, two.v4, 7000, "psst", "0.5")
            assert said == "timeout"  # allowed by the rule, and still not forwarded
        assert "psst" not in (lab.tmp / "two.log").read_text()
    finally:
        listener.kill()
        listener.wait()


def test_nobody_begins_a_flow_to_a_sandbox(lab):
    one = lab.sandboxes[0]
    listener = one.popen("/usr/bin/python3", HERE / "udp_echo.py", lab.tmp / "one.log", one.v4,
                         "7000")
    try:
        lab.wait(lambda: (lab.tmp / "one.log").exists(), 10, "the listener")
        with lab.policy(BOTH):
            r = run("ip", "netns", "exec", lab.org, *ASK, one.v4, "7000", "intruder", "0.5")
            assert "echo" not in r.stdout
        assert "intruder" not in (lab.tmp / "one.log").read_text()
    finally:
        listener.kill()
        listener.wait()


# -- changes -------------------------------------------------------------------


@pytest.mark.parametrize("address", [V4, V6])
def test_a_denial_cuts_its_flow_at_once_and_no_other(lab, address):
    other = V6 if address == V4 else V4
    with lab.policy(BOTH):
        with Flow(lab.sandboxes[0], address) as cut, Flow(lab.sandboxes[0], other) as lives, \
                Flow(lab.sandboxes[1], other) as neighbour:
            with lab.policy([rule("deny", address), *BOTH]):
                # in force when the call returned: not one more datagram
                assert cut.ask("late") == REFUSED[address]
                assert lives.ask() == neighbour.ask() == "echo again"
                assert not heard(lab, " late")
                assert lab.record(kind="flow", reason="cut")["original"].count(address)
    # the usual policy of the lab is back, and allows none of it
            assert lives.ask() == REFUSED[other]


def test_an_unrelated_change_cuts_nothing(lab):
    time.sleep(0.7)  # counters are told now and then
    before = queue_counters(lab)["cut"]
    with lab.policy(BOTH):
        with Flow(lab.sandboxes[0], V4) as four, Flow(lab.sandboxes[0], V6) as six:
            for i in range(5):
                lab.put_policy("lab", {"name": "lab", "sandboxes": {"ids": ["sandbox-*"]},
                                       "egress": [rule("deny", f"x{i}.test"), *BOTH]})
                assert four.ask() == six.ask() == "echo again"
            time.sleep(0.7)
            assert queue_counters(lab)["cut"] == before


def test_a_sandbox_that_is_gone_has_no_flows(lab):
    two = lab.sandboxes[1]
    with lab.policy(BOTH):
        with Flow(two, V4) as flow:
            lab.admin.call("DELETE", f"/v1/sandboxes/{two.id}", expect=204)
            try:
                assert flow.ask() == REFUSED[V4]
            finally:
                lab.register(two, team="lab")
            assert flow.ask("back") == "echo back"


def test_many_flows_are_reviewed(lab):
    """More than are asked about at a time; half of them end."""
    with lab.policy(BOTH):
        flows = "import socket,sys,time\n" \
            "socks=[]\n" \
            "for i in range(1200):\n" \
            "    s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.settimeout(3)\n" \
            "    s.connect((sys.argv[1],7000+i%2)); s.send(b'many'); s.recv(99); socks.append(s)\n" \
            "    time.sleep(0.005)\n" \
            "print('open',flush=True); sys.stdin.readline()\n" \
            "n=0\n" \
            "for s in socks:\n" \
            "    try: s.send(b'more'); s.recv(99); n+=1\n" \
            "    except OSError: pass\n" \
            "    time.sleep(0.005)\n" \
            "print(n,flush=True)\n"
        p = lab.sandboxes[0].popen("prlimit", "--nofile=4096", "/usr/bin/python3", "-c", flows, V4,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            assert p.stdout.readline() == "open\n"
            began = time.monotonic()
            with lab.policy([rule("deny", V4, ports=[7001]), *BOTH]):
                print(f"a change over 1200 flows took {time.monotonic() - began:.3f} s")
                p.stdin.write("\n")
                p.stdin.flush()
                assert p.stdout.readline() == "600\n"
        finally:
            p.kill()
            p.wait()


# -- roles die ------------------------------------------------------------------


def restart_of(lab, role, pid):
    def back():
        try:
            now = lab.role_pid(role)
        except (KeyError, OSError, AssertionError):
            return False
        return now != pid and all(r["ready"] for r in lab.admin.get("/v1/status")["roles"])
    lab.wait(back, 10, f"the {role} to come back")


@pytest.mark.parametrize("role", ["queue", "gateway"])
def test_killed_role_is_back_and_flows_live(lab, role):
    sandbox = lab.sandboxes[0]
    with lab.policy(BOTH):
        with Flow(sandbox, V4) as flow:
            pid = lab.role_pid(role)
            os.kill(pid, signal.SIGKILL)
            assert flow.ask() == "echo again"
            restart_of(lab, role, pid)
            assert flow.ask() == "echo again"
            assert ask(sandbox, V6)[0] == "echo hello"
            # and it can still be cut
            with lab.policy([]):
                assert flow.ask("late") == REFUSED[V4]


@pytest.mark.parametrize("role", ["queue", "gateway"])
def test_nothing_new_passes_while_a_role_is_stopped(lab, role):
    sandbox = lab.sandboxes[0]
    with lab.policy(BOTH):
        with Flow(sandbox, V4) as flow:
            pid = lab.role_pid(role)
            os.kill(pid, signal.SIGSTOP)
            try:
                assert ask(sandbox, V6, 7000, "frozen", "0.5")[0] == "timeout"
                assert flow.ask() == "echo again"
            finally:
                if role == "gateway":
                    time.sleep(2.5)  # the time of the answer is over
                    os.kill(pid, signal.SIGCONT)
                else:
                    os.kill(pid, signal.SIGKILL)  # what waits dies with it
            if role == "queue":
                restart_of(lab, role, pid)
            lab.wait(lambda: ask(sandbox, V6)[0] == "echo hello", 10, "flows again")
            assert not heard(lab, " frozen")


def test_a_denial_is_not_in_force_before_the_queue_is_back(lab):
    """While flows cannot be reviewed the call does not say that all is well."""
    with lab.policy(BOTH):
        with Flow(lab.sandboxes[0], V4) as flow:
            pid = lab.role_pid("queue")
            os.kill(pid, signal.SIGSTOP)
            try:
                status, _ = lab.admin.call("PUT", "/v1/policies/lab", {
                    "name": "lab", "sandboxes": {"ids": ["sandbox-*"]}, "egress": []})
                assert status >= 500, status
                assert flow.ask() == "echo again"
            finally:
                os.kill(pid, signal.SIGCONT)
            lab.wait(lambda: flow.ask() == REFUSED[V4], 5, "the end of the flow")


def test_too_many_questions_are_drops(lab):
    sandbox = lab.sandboxes[0]
    flood = "import socket\n" \
        f"for i in range(450):\n" \
        "    s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n" \
        "    s.bind(('', 20000 + i))\n" \
        f"    s.sendto(b'flood', ('{V4}', 7000)); s.close()\n"  # no port of a flow that was allowed before
    with lab.policy(BOTH):
        ask(sandbox, V4)
        before = queue_counters(lab)
        pid = lab.role_pid("gateway")
        os.kill(pid, signal.SIGSTOP)
        try:
            sandbox.python(flood)
            time.sleep(3)
        finally:
            os.kill(pid, signal.SIGCONT)
        lab.wait(lambda: queue_counters(lab)["unanswered"] - before["unanswered"] >= 200, 10,
                 "the end of the waiting packets")
        assert queue_counters(lab)["overflowed"] > before["overflowed"]
        assert not heard(lab, " flood")
        lab.wait(lambda: ask(sandbox, V4)[0] == "echo hello", 10, "flows again")


def test_a_flood_of_one_does_not_stop_another(lab):
    one, two = lab.sandboxes
    flood = "import os,socket,time\n" \
        "end=time.monotonic()+2\n" \
        "while time.monotonic()<end:\n" \
        "    s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n" \
        f"    s.sendto(b'x', ('{ELSEWHERE}', 7000)); s.close()\n"
    with lab.policy(BOTH):
        p = one.popen("/usr/bin/python3", "-c", flood)
        try:
            time.sleep(0.5)
            for _ in range(5):
                said, ms = ask(two, V4)
                assert said == "echo hello" and ms < SOON_MS, (said, ms)
        finally:
            p.wait(20)
    rules = in_gateway(lab, "nft", "list", "chain", "inet", "sallyport", "ask").stdout
    over = [line for line in rules.splitlines() if "@asking_v4" in line]
    assert over and "packets 0 " not in over[0], rules


FILL = "import socket,time\n" \
    "s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n" \
    "for i in range(4300):\n" \
    f"    s.sendto(b'x', ('{V4}', 10000+i))\n" \
    "    time.sleep(0.0042)\n"


@pytest.mark.parametrize("verdicts", ["at once", "late"])
def test_a_sandbox_has_so_many_flows_and_no_more(lab, verdicts):
    """So that it cannot fill the node's connection table: also while verdicts
    come late, when the kernel does not know the flows yet."""
    one, two = lab.sandboxes

    def over():
        rules = in_gateway(lab, "nft", "list", "chain", "inet", "sallyport", "decided").stdout
        line = next(x for x in rules.splitlines() if "@having_v4" in x)
        return int(line.split("packets ")[1].split()[0])
    in_gateway(lab, "sysctl", "-qw", "net.netfilter.nf_conntrack_udp_timeout=600")
    former = over()
    with lab.policy(BOTH):
        filling = threading.Thread(target=one.python, args=(FILL,), kwargs={"timeout": 120})
        filling.start()
        while filling.is_alive():
            if verdicts == "late":
                queue = lab.role_pid("queue")
                os.kill(queue, signal.SIGSTOP)
                time.sleep(0.1)
                os.kill(queue, signal.SIGCONT)
            time.sleep(0.1)
        filling.join()
        held = int(in_gateway(lab, "cat", "/proc/sys/net/netfilter/nf_conntrack_count").stdout)
        assert over() > former and held < 4096 + 100, (over(), former, held)
        assert ask(one, V4, 7000, "one too many", "0.3")[0] == "timeout"
        assert ask(two, V4)[0] == "echo hello"
    # the usual policy of the lab has ended them all
    with lab.policy(BOTH):
        lab.wait(lambda: ask(one, V4)[0] == "echo hello", 5, "room, when they have ended")


def test_limit_of_new_flows(lab):
    time.sleep(3)  # records are limited, too, and the tests before wrote many
    with lab.policy(BOTH, limits={"connectionsPerSecond": 3}):
        said = ask(lab.sandboxes[0], V4)[0]
        burst = lab.sandboxes[0].python(
            "import socket\n"
            "n=0\n"
            "for i in range(30):\n"
            "    s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.settimeout(2)\n"
            f"    s.connect(('{V4}',7000)); s.send(b'x')\n"
            "    try: s.recv(9); n+=1\n"
            "    except OSError: pass\n"
            "print(n)").stdout
        assert said == "echo hello" and 0 < int(burst) < 20, burst
        assert lab.record(kind="flow", reason="limit")


PACE = """
import socket, sys, time
# sends for some seconds, as fast as rate says; how many bytes a second came back
address, rate, seconds, size = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), 1000
s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
s.setblocking(False)
s.connect((address, 7000))
sent = got = 0
began = time.monotonic()
while time.monotonic() - began < seconds:
    for _ in range(64):
        try:
            got += len(s.recv(2000)) + 28
        except OSError:
            break
    if sent < (time.monotonic() - began) * rate:
        try:
            s.send(b"." * size)
            sent += size + 28
        except OSError:
            pass
    else:
        time.sleep(0.0005)
print(int(sent / seconds), int(got / seconds))
"""


def pace(sandbox, address, rate=1e6, seconds=3):
    return tuple(int(n) for n in sandbox.python(PACE, address, rate, seconds, check=True).stdout.split())


@pytest.mark.parametrize("address", [V4, V6])
def test_flows_have_the_pace_of_the_policy(lab, address):
    """bytesPerSecond is for UDP, too; in force at once, also for flows that are there."""
    one, two = lab.sandboxes
    with lab.policy(BOTH):
        free = pace(one, address)
        assert free[1] > 500_000, free
    with lab.policy(BOTH, limits={"bytesPerSecond": 100_000}):
        held = pace(one, address)
        # a second's worth may be saved up: four seconds' worth in three
        assert held[0] > 500_000 and 60_000 < held[1] < 160_000, held
        # each has its own
        other = two.popen("/usr/bin/python3", "-c", PACE, address, "1e6", "3", stdout=subprocess.PIPE, text=True)
        mine = pace(one, address)[1]
        theirs = int(other.communicate(timeout=20)[0].split()[1])
        assert mine > 60_000 and theirs > 60_000, (mine, theirs)
        lab.record(kind="packet", reason="limit", sandbox=one.id)
        assert ask(one, address)[0] in ("echo hello", "timeout")
    with lab.policy(BOTH):
        assert pace(one, address, seconds=2)[1] > 500_000
    rates = in_gateway(lab, "nft", "list", "table", "inet", "sallyport_lock").stdout
    assert "bytes/second }" not in rates and "kbytes/second" not in rates, rates


POUR = """
import socket, sys, time
# whoever asks gets a MB/s for three seconds
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], 7002))
print("ready", flush=True)
while True:
    _, who = s.recvfrom(100)
    began, n = time.monotonic(), 0
    while time.monotonic() - began < 3:
        if n < (time.monotonic() - began) * 1000:
            s.sendto(b"." * 972, who)
            n += 1
        else:
            time.sleep(0.0005)
"""


def test_what_comes_to_a_sandbox_has_the_pace_too(lab):
    """One small question, much more than the rate in answers."""
    drink = "import socket,sys,time\n" \
        "s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.settimeout(0.5)\n" \
        f"s.connect(('{V4}',7002)); s.send(b'pour'); got=0; end=time.monotonic()+3\n" \
        "while time.monotonic()<end:\n" \
        "    try: got+=len(s.recv(2000))+28\n" \
        "    except TimeoutError: pass\n" \
        "print(got//3)"
    server = lab.in_origin("/usr/bin/python3", "-c", POUR, V4, stdout=subprocess.PIPE, text=True)
    assert server.stdout.readline() == "ready\n"
    try:
        with lab.policy(BOTH):
            free = int(lab.sandboxes[0].python(drink, check=True).stdout)
        time.sleep(0.5)
        with lab.policy(BOTH, limits={"bytesPerSecond": 100_000}):
            held = int(lab.sandboxes[0].python(drink, check=True).stdout)
    finally:
        server.terminate()
    assert free > 600_000 and 80_000 < held < 160_000, (free, held)


# -- the rules -------------------------------------------------------------------


def test_status_says_how_packets_come(lab):
    flows = lab.admin.get("/v1/status")["flows"]
    assert flows == {"queue": flows["queue"], "forwardsIPv4": True, "forwardsIPv6": True}
    rules = in_gateway(lab, "nft", "list", "table", "inet", "sallyport").stdout
    assert flows["queue"] == ("native" if "queue num" in rules or "queue to" in rules else "xtables")


def test_flushed_rules_are_back_and_said(lab):
    sandbox = lab.sandboxes[0]
    with lab.policy(BOTH):
        with Flow(sandbox, V4) as flow:
            mark = len(lab.log())
            in_gateway(lab, "nft", "flush", "ruleset")
            lab.wait(lambda: "installing it again" in lab.log()[mark:], 5, "the word about it")
            lab.wait(lambda: lab.admin.get("/v1/status")["rulesInstalled"], 5, "the rules")
            assert flow.ask() == "echo again"
            assert ask(sandbox, V6)[0] == "echo hello"
        assert_refused(sandbox, ELSEWHERE)


@pytest.mark.parametrize("tool, address", [("iptables", V4), ("ip6tables", V6)])
def test_removed_iptables_rule_is_back_and_said(lab, tool, address):
    if lab.admin.get("/v1/status")["flows"]["queue"] != "xtables":
        pytest.skip("the queue's rule is nft's here")
    sandbox = lab.sandboxes[0]
    with lab.policy(BOTH):
        mark = len(lab.log())
        in_gateway(lab, tool, "-t", "mangle", "-F", "PREROUTING")
        said, _ = ask(sandbox, address, 7000, "gap", "0.2")
        assert said in ("timeout", "echo gap")  # dropped, or back already
        lab.wait(lambda: "iptables rule" in lab.log()[mark:], 5, "the word about it")
        lab.wait(lambda: ask(sandbox, address)[0] == "echo hello", 5, "the rule")
        rules = in_gateway(lab, tool, "-t", "mangle", "-S", "PREROUTING").stdout
        assert rules.count("NFQUEUE") == 1, rules


@contextlib.contextmanager
def rule_removed_for_good(lab):
    """The supervisor sleeps, so nobody puts the rule back."""
    pid = lab.role_pid("supervisor")
    os.kill(pid, signal.SIGSTOP)
    try:
        for tool in ("iptables", "ip6tables"):
            in_gateway(lab, tool, "-t", "mangle", "-F", "PREROUTING")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_without_the_rule_packets_are_dropped(lab):
    if lab.admin.get("/v1/status")["flows"]["queue"] != "xtables":
        pytest.skip("the queue's rule is nft's here")
    sandbox = lab.sandboxes[0]
    with lab.policy(BOTH):
        with Flow(sandbox, V4) as flow:
            with rule_removed_for_good(lab):
                for address in (V4, V6):
                    assert ask(sandbox, address, 7000, "unasked", "0.3")[0] == "timeout"
                assert flow.ask() == "echo again"
            lab.wait(lambda: ask(sandbox, V4)[0] == "echo hello", 5, "the rule")
    assert not heard(lab, " unasked")


RAW = """
import socket, struct, sys
v4, v6, mark = sys.argv[1], sys.argv[2], sys.argv[3].encode()
def send(family, address, proto):
    s = socket.socket(family, socket.SOCK_RAW, proto)
    s.sendto(mark + b"." * 24, (address, 0) if family == socket.AF_INET else (address, 0, 0, 0))
def udp(sport, dport, data):
    return struct.pack("!HHHH", sport, dport, 8 + len(data), 0) + data
for proto in (2, 4, 33, 41, 47, 50, 51, 89, 94, 103, 108, 112, 115, 132, 136, 253):
    send(socket.AF_INET, v4, proto)
    if proto not in (50, 51):
        send(socket.AF_INET6, v6, proto)
# IPv4 by hand: a first fragment, a last one, one with a source route
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
def v4_packet(frag, options=b""):
    data = udp(4000, 7000, mark)
    return struct.pack("!BBHHHBBH4s4s", 0x45 + len(options) // 4, 0, 20 + len(options) + len(data), 99,
                       frag, 64, 17, 0, socket.inet_aton(sys.argv[4]), socket.inet_aton(v4)) \\
        + options + data
for packet in (v4_packet(0x2000), v4_packet(0x0007), v4_packet(0, b"\\x94\\x04\\0\\0"),
               v4_packet(0, b"\\x83\\x07\\x04" + socket.inet_aton(v4) + b"\\0")):
    s.sendto(packet, (v4, 0))
"""


def test_other_protocols_and_odd_packets_are_dropped(lab):
    sandbox = lab.sandboxes[0]
    out = lab.tmp / "sniffed"
    sniffer = lab.in_origin("/usr/bin/python3", HERE / "sniff.py", out, "ODDPACKET",
                            stdout=subprocess.PIPE, text=True)
    assert sniffer.stdout.readline() == "ready\n"
    everything = [rule("allow", t, protocol="any") for t in ("0.0.0.0/0", "::/0")]
    with lab.policy(everything, defaultAction="allow"):
        r = sandbox.python(RAW, V4, V6, "ODDPACKET", sandbox.v4)
        assert r.returncode == 0, r.stderr
        # the sniffer hears, when there is something
        assert ask(sandbox, V4, 7000, "ODDPACKET-not-odd")[0].startswith("echo")
        lab.wait(out.exists, 5, "the sniffer")
        time.sleep(0.3)
    assert len(out.read_text().splitlines()) == 1, out.read_text()
    sniffer.terminate()


def test_a_restarted_daemon_ends_old_flows(lab):
    with lab.policy(BOTH):
        with Flow(lab.sandboxes[0], V4) as flow:
            assert lab.stop() == 0
            assert flow.ask() == "timeout"  # closed for flows that were allowed, too
            rules = in_gateway(lab, "iptables", "-t", "mangle", "-S").stdout
            assert "NFQUEUE" not in rules
            lab.policies.joinpath("deny.yaml").write_text(f"deny: [{{target: {V4}}}]\n")
            try:
                lab.start()
                assert flow.ask() == REFUSED[V4]
                assert ask(lab.sandboxes[0], V6)[0] == "echo hello"
            finally:
                lab.policies.joinpath("deny.yaml").unlink()
                lab.stop()
                lab.start()


def test_without_iptables_all_but_tcp_is_dropped(lab):
    if lab.admin.get("/v1/status")["flows"]["queue"] != "xtables":
        pytest.skip("this node does without iptables")
    sandbox = lab.sandboxes[0]
    with lab.policy([rule("allow", "plain.lab.test"), *BOTH]):
        lab.stop()
        try:
            lab.start("sh", "-c", "mount --bind /dev/null /usr/sbin/xtables-nft-multi && "
                      'exec "$@"', "sh")
            assert lab.admin.get("/v1/status")["flows"]["queue"] == "none"
            assert "found no way to ask about packets" in lab.log()[lab.log_mark:]
            for address in (V4, V6):
                assert ask(sandbox, address, 7000, "unasked", "0.3")[0] == "timeout"
            assert sandbox.curl("http://plain.lab.test/")[0] == 200
        finally:
            lab.stop()
            lab.start()
        assert ask(sandbox, V4)[0] == "echo hello"
    assert not heard(lab, " unasked")


# What systemd makes of the unit's ProtectSystem=strict and CapabilityBoundingSet, with
# iptables being the legacy one by the system's choice: it would need a lock file in /run
# and CAP_NET_RAW.
UNIT = """
set -e
cp -a /etc/alternatives "$1"
for tool in iptables ip6tables; do ln -sf /usr/sbin/$tool-legacy "$1/alternatives/$tool"; done
mount --bind "$1/alternatives" /etc/alternatives
for place in /usr /etc /run /var; do mount --rbind $place $place; mount -o remount,bind,ro $place; done
shift
capabilities=$(sed -n '/^CapabilityBoundingSet=/,/[^\\\\]$/p' "$1" | tr -d '\\\\' | tr '\\n\\t' '  ' |
    sed 's/^CapabilityBoundingSet=//; s/CAP_/+/g' | tr 'A-Z' 'a-z' | tr -s ' ' ',')
shift
if touch /run/xtables.lock.of-the-test 2>/dev/null; then exit 1; fi
exec setpriv --bounding-set "-all,${capabilities%,}" --no-new-privs "$@"
"""


def test_works_in_the_sandbox_of_the_unit(lab):
    if lab.admin.get("/v1/status")["flows"]["queue"] != "xtables":
        pytest.skip("the queue's rule is nft's here")
    sandbox = lab.sandboxes[0]
    place = lab.tmp / "alternatives-of-legacy"
    place.mkdir()
    unit = SOURCE / "deploy" / "systemd" / "sallyport.service.in"
    with lab.policy(BOTH):
        lab.stop()
        try:
            lab.start("unshare", "-m", "sh", "-c", UNIT, "sh", place, unit)
            assert "could not make the rule" not in lab.log()[lab.log_mark:]
            assert lab.admin.get("/v1/status")["flows"]["queue"] == "xtables"
            for address in (V4, V6):
                assert ask(sandbox, address)[0] == "echo hello"
            assert_refused(sandbox, ELSEWHERE)
        finally:
            lab.stop()
            lab.start()


def test_audit_tail_tells_of_flows(lab):
    sandbox = lab.sandboxes[0]
    assert_refused(sandbox, V4, 7001)
    said = run(BIN / "sallyport", "audit", "tail", "-n", "1", "--socket",
               lab.run_dir / "admin.sock").stdout
    assert f" deny  flow udp://{V4}:7001 (policy)" in said, said
