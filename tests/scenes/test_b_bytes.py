# SPDX-License-Identifier: Apache-2.0
"""test_b_bytes.py - TCP that is neither TLS nor HTTP: who may, by what rule

Servers that greet and clients that wait for it (a real sshd, SMTP, MySQL),
clients that speak first (Redis), ends of either side, tunnels that idle. Field
cases 12, 48 and 55.
"""
import contextlib
import hashlib
import json
import os
import re
import time
from pathlib import Path

import pytest

from conftest import open_lab
from lab import ORIGIN4, ORIGIN6, run

HERE = Path(__file__).parent
# addresses of the origin, and which names lead there
OPEN = ("10.212.2.20", "fd12:2::20")    # ssh.b.test, mail.b.test, ...
SEEN = ("10.212.2.21", "fd12:2::21")    # seen.b.test (methods), beside.b.test (without)
BOUND = ("10.212.2.22", "fd12:2::22")   # bound.b.test: a credential on 443
SHUT = ("10.212.2.23", "fd12:2::23")    # shut.b.test: denied; far.b.test: other ports only
NAMES = {"ssh": OPEN, "mail": OPEN, "db": OPEN, "tcp": OPEN, "seen": SEEN, "beside": SEEN,
         "bound": BOUND, "shut": SHUT, "far": SHUT}
ADDRESSES = [OPEN, SEEN, BOUND, SHUT]
TUNNEL_IDLE_S = 10

POLICY = {
    "name": "lab", "sandboxes": {"ids": ["sandbox-*"]}, "defaultAction": "deny",
    "egress": [
        {"action": "allow", "target": "ssh.b.test", "ports": [22]},
        {"action": "allow", "target": "mail.b.test", "ports": [25, "2500-2600"]},
        {"action": "allow", "target": "db.b.test", "ports": [3306, 6379]},
        {"action": "allow", "target": "tcp.b.test", "ports": ["7000-7999"]},
        {"action": "allow", "target": "seen.b.test", "methods": ["GET"], "paths": ["/*"]},
        {"action": "allow", "target": "beside.b.test"},
        {"action": "allow", "target": "bound.b.test", "ports": [443, 8443, 7005]},
        {"action": "allow", "target": "far.b.test", "ports": [443]},
        {"action": "allow", "target": "api.lab.test"},
        {"action": "allow", "target": "free.lab.test"},
    ],
}


def start_sshd(lab):
    Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("host", "user"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", lab.tmp / f"ssh-{name}")
    (lab.tmp / "ssh-user.pub").rename(lab.tmp / "ssh-authorized")
    config = lab.tmp / "sshd.conf"
    config.write_text("\n".join([
        *(f"ListenAddress {a}" for pair in ADDRESSES for a in pair), "Port 22",
        f"HostKey {lab.tmp}/ssh-host", f"AuthorizedKeysFile {lab.tmp}/ssh-authorized",
        "PidFile none", "StrictModes no", "UsePAM no", "PasswordAuthentication no",
        "PermitRootLogin prohibit-password", "UseDNS no", "LogLevel ERROR", ""]))
    lab.in_origin("/usr/sbin/sshd", "-D", "-e", "-f", config, stderr=open(lab.tmp / "sshd.log", "wb"))


def prepare(lab):
    zone = lab.tmp / "zone.json"
    more = {f"{n}.b.test": {"A": [a[0]], "AAAA": [a[1]]} for n, a in NAMES.items()}
    zone.write_text(json.dumps(json.loads(zone.read_text()) | more))
    for v4, v6 in ADDRESSES:
        run("ip", "-n", lab.org, "addr", "add", f"{v4}/24", "dev", "o0")
        run("ip", "-n", lab.org, "addr", "add", f"{v6}/64", "dev", "o0", "nodad")
    lab.greeted = lab.tmp / "greeter.log"
    lab.in_origin("/usr/bin/python3", HERE / "greeter.py", lab.greeted,
                  stdout=open(lab.tmp / "greeter.ready", "wb"))
    lab.wait(lambda: (lab.tmp / "greeter.ready").read_text(), 10, "the servers")
    start_sshd(lab)
    lab.usual_policy = POLICY


@pytest.fixture(scope="module")
def lab():
    pins = {f"{n}.b.test": list(a) for n, a in NAMES.items()} | {"free.lab.test": [ORIGIN4, ORIGIN6]}
    config = {"pins": pins, "timeouts": {"tunnelIdleMs": TUNNEL_IDLE_S * 1000, "idleMs": 3000},
              "limits": {"connections": 4096}}
    with open_lab("b", config, prepare) as lab:
        lab.binding({"name": "bound", "match": {"hosts": ["bound.b.test"], "ports": [443, 8443]},
                     "auth": {"type": "bearer", "credential": "api-token"}})
        run("ip", "netns", "exec", lab.org, "ssh-keyscan", "-T", "5", OPEN[0])
        yield lab


@pytest.fixture
def served(lab):
    """What the servers saw end since the test began, as a function."""
    start = lab.greeted.stat().st_size

    def lines(**match):
        with open(lab.greeted) as log:
            log.seek(start)
            found = [json.loads(line) for line in log]
        return [x for x in found if all(x[k] == v for k, v in match.items())]
    return lines


@pytest.fixture
def records(lab):
    start = len(lab.audit_text().splitlines())

    def find(**match):
        found = [json.loads(line) for line in lab.audit_text().splitlines()[start:]]
        return [r for r in found if all(r.get(k) == v for k, v in match.items())]

    find.one = lambda **match: lab.wait(lambda: find(**match), 5, f"a record {match}")[-1]
    return find


# Connects, says what it is told, tells what it heard, how it ended and when.
# A word "+0.3" waits; "|" ends its own direction.
CLIENT = """
import socket, struct, sys, time
host, port, family, words = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
[info, *_] = socket.getaddrinfo(host, port, {4: socket.AF_INET, 6: socket.AF_INET6}[family],
                                socket.SOCK_STREAM)
s = socket.socket(info[0])
s.settimeout(20)
s.connect(info[4])
start, heard, end = time.monotonic(), b'', 'end'
try:
    for word in words:
        if word.startswith('+'):
            time.sleep(float(word))
        elif word == '|':
            s.shutdown(socket.SHUT_WR)
        elif word == 'hear':
            heard += s.recv(65536)
        else:
            s.sendall(word.encode().decode('unicode_escape').encode('latin1'))
    while data := s.recv(65536):
        heard += data
except ConnectionResetError:
    end = 'reset'
except TimeoutError:
    end = 'timeout'
print(heard.decode('latin1').encode('unicode_escape').decode())
print(end, round(time.monotonic() - start, 3))
"""


class Told:
    def __init__(self, r):
        assert r.returncode == 0, r.stderr
        heard, last = r.stdout.splitlines()
        self.heard = heard.encode().decode("unicode_escape")
        self.end, seconds = last.split()
        self.seconds = float(seconds)


def talk(sandbox, host, port, *words, family=4):
    return Told(sandbox.python(CLIENT, host, port, family, *words))


def refused(sandbox, host, port, *words, family=4):
    """Reset within half a second, nothing heard."""
    t = talk(sandbox, host, port, *words, family=family)
    assert (t.heard, t.end) == ("", "reset"), (t.heard, t.end)
    assert t.seconds < 0.5 + sum(float(w) for w in words if w.startswith("+")), t.seconds


families = pytest.mark.parametrize("family", [4, 6])
which = {4: 0, 6: 1}


@contextlib.contextmanager
def only(lab, *rules, **more):
    with lab.policy(list(rules), **more):
        yield


# -- servers that speak first ------------------------------------------------------

def ssh(lab, sandbox, host, *command, **kw):
    return sandbox.run("ssh", "-F", "none", "-i", lab.tmp / "ssh-user", "-o", "StrictHostKeyChecking=no",
                       "-o", "UserKnownHostsFile=/dev/null", "-o", "ConnectTimeout=10", "-o", "LogLevel=ERROR",
                       "-o", "IdentitiesOnly=yes", f"root@{host}", *command, **kw)


@families
def test_ssh_by_name(lab, sandbox, records, family):
    r = ssh(lab, sandbox, "ssh.b.test", f"-{family}", "echo", "logged in")
    assert r.stdout == "logged in\n", r.stderr
    q = records.one(kind="tunnel", port=22)
    address = OPEN[which[family]]
    assert (q["host"], q["hostFrom"], q["scheme"], q["verdict"]) == ("ssh.b.test", "dns", "tcp", "allow")
    assert q["address"] == q["original"] and address in q["address"]
    assert q["rule"].startswith("allow ssh.b.test") and q["bytesIn"] > 1000 and q["bytesOut"] > 1000


@families
def test_ssh_by_address(lab, sandbox, records, family):
    address = OPEN[which[family]]
    with only(lab, {"action": "allow", "target": address, "ports": [22]}):
        r = ssh(lab, sandbox, address, "echo", "logged in")
        assert r.stdout == "logged in\n", r.stderr
        q = records.one(kind="tunnel", port=22)
        assert q["verdict"] == "allow" and q["rule"].startswith(f"allow {address}")


def test_ssh_keyscan_waits_for_the_server(lab, sandbox):
    """Five connections at once, none of which says much."""
    r = sandbox.run("ssh-keyscan", "-T", "5", "ssh.b.test")
    key = (lab.tmp / "ssh-host.pub").read_text().split()[1]
    assert key in r.stdout, r.stderr


def test_64_mib_through_ssh(lab, sandbox):
    data = os.urandom(1 << 20) * 64
    r = ssh(lab, sandbox, "ssh.b.test", "sha256sum", input=data)
    assert r.stdout.split()[0] == hashlib.sha256(data).hexdigest(), r.stderr


SMTP = """
import smtplib, sys
s = smtplib.SMTP(sys.argv[1], int(sys.argv[2]), timeout=10)
print(s.ehlo()[0], s.sendmail('a@b.test', ['c@b.test'], 'hello') if len(sys.argv) > 3 else '', s.quit()[0])
"""


@pytest.mark.parametrize("port", [25, 2525])  # well-known; in a range, found by silence
def test_smtp_by_name(sandbox, records, port):
    r = sandbox.python(SMTP, "mail.b.test", port)
    assert r.stdout.split() == ["250", "221"], r.stderr
    assert records.one(kind="tunnel", port=port)["host"] == "mail.b.test"


@families
@pytest.mark.parametrize("port", [3306, 3307])
def test_mysql_greets(lab, sandbox, records, family, port):
    address = OPEN[which[family]]
    for rule, host in (({"target": "db.b.test", "ports": ["3300-3310"]}, "db.b.test"),
                       ({"target": address, "ports": ["3300-3310"]}, address)):
        with only(lab, {"action": "allow", **rule}):
            t = talk(sandbox, host, port, "hear", "login", "hear", "|", family=family)
            assert "8.0.36-lab" in t.heard and t.heard.endswith("\x07\0\0\x02\0\0\0\x02\0\0\0"), t.heard
            assert t.end == "end" and t.seconds < 2
    assert records.one(kind="tunnel", port=port)["bytesOut"] == 5


@pytest.mark.parametrize("how", ["name", "address", "range"])
@families
def test_client_first(lab, sandbox, records, how, family):
    address = OPEN[which[family]]
    rule = {"name": {"target": "db.b.test"}, "address": {"target": address},
            "range": {"target": "10.212.2.0/27" if family == 4 else "fd12:2::/64", "ports": ["6000-6999"]}}[how]
    with only(lab, {"action": "allow", **rule}):
        t = talk(sandbox, "db.b.test" if how == "name" else address, 6379,
                 "*1\\r\\n$4\\r\\nPING\\r\\n", "hear", "|", family=family)
        assert (t.heard, t.end) == ("+PONG\r\n", "end")
        assert records.one(kind="tunnel", port=6379)["bytesOut"] == 14


def test_late_greeting_and_no_greeting(sandbox):
    assert talk(sandbox, "tcp.b.test", 7006, "hear", "|").heard == "late\n"
    t = talk(sandbox, "tcp.b.test", 7007, "+1.5", "ab c\\n", "hear", "|")
    assert (t.heard, t.end) == ("ab c\n", "end")


@pytest.mark.parametrize("silence", ["+0", "+0.6"])
def test_text_without_a_line(sandbox, silence):
    """Which could become a request of HTTP, and does not."""
    t = talk(sandbox, "tcp.b.test", 7007, silence, "PING", "hear", "|")
    assert (t.heard, t.end) == ("PING", "end")
    assert t.seconds < 1.5


def test_denied_text_without_a_line(sandbox, records, served):
    refused(sandbox, SHUT[0], 6379, "PING")
    assert records.one(kind="connect", port=6379)["reason"] == "policy"
    refused(sandbox, "seen.b.test", 7007, "PING")
    assert records.one(kind="connect", port=7007)["reason"] == "not_tls_or_http"
    assert not served()


def test_server_that_says_it_and_closes(sandbox):
    t = talk(sandbox, "tcp.b.test", 7008)
    assert (t.heard, t.end) == ("noon\n", "end")


# -- no, at once -------------------------------------------------------------------

DENIED = [("shut.b.test", 22), ("shut.b.test", 25), ("shut.b.test", 3306), ("shut.b.test", 7006),
          ("far.b.test", 22), ("far.b.test", 7005),   # other ports of that name
          ("ssh.b.test", 3307), ("mail.b.test", 2499)]


@families
@pytest.mark.parametrize("host,port", DENIED)
def test_denied_silence_is_reset(sandbox, records, served, host, port, family):
    address = NAMES[host.split(".")[0]][which[family]]
    refused(sandbox, address, port, family=family)
    r = records.one(kind="connect", port=port, sandbox=sandbox.id)
    assert (r["verdict"], r["reason"], r["scheme"]) == ("deny", "policy", "tcp")
    refused(sandbox, address, port, "SSH-2.0-client\\r\\n", family=family)
    assert not served()


@families
def test_denied_redis(sandbox, served, family):
    for host in (SHUT[which[family]], OPEN[which[family]] if family == 4 else SHUT[1]):
        if host == SHUT[which[family]]:
            refused(sandbox, host, 6379, "*1\\r\\n$4\\r\\nPING\\r\\n", family=family)
    assert not served()


def test_deny_rule_of_a_name_counts_for_its_address(lab, sandbox, records):
    sandbox.run("getent", "ahosts", "far.b.test", check=True)
    with only(lab, {"action": "deny", "target": "far.b.test", "ports": [7005]},
              {"action": "allow", "target": "10.212.2.0/24"}):
        assert talk(sandbox, SHUT[0], 7008).heard == "noon\n"
        refused(sandbox, SHUT[0], 7005)
        assert records.one(kind="connect", port=7005)["host"] == "far.b.test"


def test_names_are_known_to_who_asked_only(lab, sandbox, neighbour):
    """Another sandbox, that DNS did not tell: no rule by name is for it."""
    talk(sandbox, "tcp.b.test", 7008)
    with only(lab, {"action": "allow", "target": "mail.b.test"}):
        refused(neighbour, OPEN[0], 7008)
        assert talk(neighbour, "mail.b.test", 7008).heard == "noon\n"


def test_private_address_of_a_foreign_name(lab, sandbox, records):
    """A name that is not pinned leads to no private address, whoever speaks."""
    zone = lab.tmp / "zone.json"
    before = zone.read_text()
    zone.write_text(json.dumps(json.loads(before) | {"rogue.b.test": {"A": [OPEN[0]]}}))
    try:
        with only(lab, {"action": "allow", "target": "rogue.b.test"}):
            sandbox.run("getent", "ahosts", "rogue.b.test")
            refused(sandbox, OPEN[0], 22)
            refused(sandbox, OPEN[0], 7005)
            refused(sandbox, OPEN[0], 6379, "*1\\r\\n$4\\r\\nPING\\r\\n")
    finally:
        zone.write_text(before)


# -- where something inside is to be seen --------------------------------------------

@pytest.mark.parametrize("port", [25, 587])
@families
def test_starttls_on_an_inspected_host_is_refused(sandbox, records, served, port, family):
    refused(sandbox, "seen.b.test", port, family=family)
    r = records.one(kind="connect", port=port)
    assert (r["reason"], r["verdict"], r["host"]) == ("not_tls_or_http", "deny", "seen.b.test")
    r = sandbox.python(SMTP, "seen.b.test", port)
    assert r.returncode and not served()


def test_unknown_protocol_on_an_inspected_host_is_refused(sandbox, records, served):
    refused(sandbox, "seen.b.test", 2525, "EHLO me\\r\\n")
    refused(sandbox, "seen.b.test", 7007, "+0.6", "\\x01\\x02")  # it is waited for
    assert records.one(kind="connect", port=7007)["reason"] == "not_tls_or_http"
    assert not served()


def test_name_beside_an_inspected_one_is_no_back_door(lab, sandbox, neighbour):
    assert talk(neighbour, "beside.b.test", 7008).heard == "noon\n"
    neighbour.run("getent", "ahosts", "seen.b.test")
    refused(neighbour, "beside.b.test", 25)
    refused(neighbour, "beside.b.test", 7007, "\\x01\\x02")
    by_address = [{"action": "allow", "target": a, "ports": [25]} for a in SEEN]
    with only(lab, *by_address, *POLICY["egress"]):
        assert neighbour.python(SMTP, "beside.b.test", 25).returncode == 0  # said so, by address


def test_bound_name_is_never_passed_unseen_on_its_port(sandbox, records, served):
    refused(sandbox, "bound.b.test", 8443, "\\x01\\x02")
    assert records.one(kind="connect", port=8443)["reason"] == "not_tls_or_http"
    assert not served(port=8443)
    assert talk(sandbox, "bound.b.test", 7005, "hear", "|").heard == "hello\n"  # another port


# -- TLS and HTTP that are slow --------------------------------------------------------

SLOW_TLS = """
import socket, ssl, sys, time
name, cafile, wait = sys.argv[1], sys.argv[2], float(sys.argv[3])
s = socket.create_connection((sys.argv[4] if len(sys.argv) > 4 else name, 443), timeout=10)
time.sleep(wait)
s = ssl.create_default_context(cafile=cafile).wrap_socket(s, server_hostname=name)
s.sendall(f'GET /slow HTTP/1.1\\r\\nHost: {name}\\r\\nConnection: close\\r\\n\\r\\n'.encode())
print(s.recv(12).decode())
"""


def test_slow_tls_client_is_decided_by_its_own_name(lab, sandbox, records):
    ours = str(lab.run_dir / "ca-bundle.pem")
    for name, ca, kind in (("free.lab.test", str(lab.origin_ca), "tunnel"), ("api.lab.test", ours, "http")):
        for wait in (0.05, 0.25, 0.8):
            r = sandbox.python(SLOW_TLS, name, ca, wait)
            assert r.stdout.strip() == "HTTP/1.1 200", (name, wait, r.stderr)
            q = records.one(kind=kind, host=name)
            assert "hostFrom" not in q and q["scheme"] == "https"
    # an address of another name, at which nobody is
    r = sandbox.python(SLOW_TLS, "api.lab.test", ours, 0.8, SHUT[0])
    assert r.stdout.strip() == "HTTP/1.1 200", r.stderr


def test_slow_http_client(sandbox, records):
    t = talk(sandbox, "api.lab.test", 80, "+0.5", "GET /h HTTP/1.1\\r\\nHost: api.lab.test\\r\\n", "+0.3",
             "Connection: close\\r\\n\\r\\n")
    assert t.heard.startswith("HTTP/1.1 200"), t.heard
    assert records.one(kind="http", path="/h")["host"] == "api.lab.test"


@families
def test_address_in_the_url(lab, sandbox, origin_seen, family):
    """Case 12: no name, so no SNI; a leaf for the address, never a credential by name."""
    address = (ORIGIN4, ORIGIN6)[which[family]]
    url = f"https://{address}/by-address" if family == 4 else f"https://[{address}]/by-address"
    sandbox.run("getent", "ahosts", "api.lab.test")
    rule = {"action": "allow", "target": address, "ports": [443]}
    with only(lab, {**rule, "methods": ["GET"]}):
        assert sandbox.curl("-g", url)[0] == 200
        assert sandbox.curl("-g", "-X", "POST", url)[0] == 403
    with only(lab, rule):
        assert sandbox.curl("-g", "--cacert", str(lab.origin_ca), url)[0] == 200
    with only(lab):
        start = time.monotonic()
        assert sandbox.curl("-g", url)[0] == 0
        assert time.monotonic() - start < 2
    seen = origin_seen(path="/by-address")
    assert len(seen) == 2 and not any("uthorization" in json.dumps(x) for x in seen), seen


def test_no_environment_variable_is_needed_or_obeyed(lab, sandbox):
    """Case 55: what a client thinks of proxies changes nothing."""
    for env in ({}, {"NO_PROXY": "*", "no_proxy": "*"}, {"ALL_PROXY": "", "HTTPS_PROXY": ""}):
        r = sandbox.python(CLIENT, SHUT[0], 3306, 4, env=sandbox.env() | env)
        assert r.stdout.split()[-2] == "reset", r.stderr


# -- ends -----------------------------------------------------------------------------------

@pytest.mark.parametrize("wait", ["+0", "+0.6"])
def test_client_ends_its_direction_and_reads_the_rest(lab, sandbox, served, wait):
    t = talk(sandbox, "tcp.b.test", 7001, wait, "\\x01\\x02\\x03", "+0.2", "\\x04", "|")
    digest = hashlib.sha256(b"\1\2\3\4").hexdigest()
    assert (t.heard, t.end) == (f"4 {digest}\n", "end")


def test_client_that_only_listens(lab, sandbox, served):
    assert talk(sandbox, "tcp.b.test", 7005, "|").heard == "hello\n"
    assert talk(sandbox, "tcp.b.test", 7006, "|").heard == "late\n"
    assert talk(sandbox, "ssh.b.test", 22, "|").heard.startswith("SSH-2.0-")
    t = talk(sandbox, SHUT[0], 7005, "|")
    assert t.heard == "" and t.seconds < 0.5


def test_server_ends_its_direction_and_reads_the_rest(lab, sandbox, served):
    t = talk(sandbox, "tcp.b.test", 7002, "hear", "+0.3", "\\x01\\x02", "+0.3", "\\x03", "|")
    assert (t.heard, t.end) == ("that was all\n", "end")
    [x] = lab.wait(lambda: served(port=7002), 5, "the server's word")
    assert (x["bytes"], x["end"]) == (3, "end")


def test_reset_passes_to_the_client(sandbox):
    assert talk(sandbox, "tcp.b.test", 7004, "hear", "now").end == "reset"


@pytest.mark.parametrize("spoke", [True, False])
def test_reset_passes_to_the_server(lab, sandbox, served, spoke):
    sandbox.python(f"""
import socket, struct, time
s = socket.create_connection(('tcp.b.test', 7005))
s.recv(100)
if {spoke}:
    s.sendall(b'x')
    time.sleep(0.2)
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
s.close()
""")
    [x] = lab.wait(lambda: served(port=7005), 5, "the server's word")
    assert (x["end"], x["bytes"]) == ("reset", int(spoke))


def test_unreachable_server_is_a_reset(sandbox, records):
    t = talk(sandbox, "tcp.b.test", 7999)
    assert t.end == "reset" and t.seconds < 1
    r = records.one(kind="connect", port=7999)
    assert (r["reason"], r["host"]) == ("connect_failed", "tcp.b.test")


BULK = """
import hashlib, socket, sys, threading
s = socket.create_connection((sys.argv[1], 7003), timeout=60)
line = b''
while not line.endswith(b'\\n'):
    line += s.recv(1)
def send():
    for _ in range(64):
        s.sendall(b'\\xa5' * (1 << 20))
    s.shutdown(socket.SHUT_WR)
t = threading.Thread(target=send)
t.start()
h, n = hashlib.sha256(), 0
while data := s.recv(1 << 18):
    h.update(data)
    n += len(data)
t.join()
print(n, h.hexdigest() == line.decode().strip())
"""


def test_64_mib_in_both_directions_at_once(lab, sandbox, served, records):
    r = sandbox.python(BULK, "tcp.b.test")
    assert r.stdout.split() == [str(64 << 20), "True"], r.stderr
    [x] = lab.wait(lambda: served(port=7003), 5, "the server's word")
    assert x["sha256"] == hashlib.sha256(b"\xa5" * (64 << 20)).hexdigest() and x["end"] == "end"
    q = records.one(kind="tunnel", port=7003)
    assert q["bytesOut"] == 64 << 20 and q["bytesIn"] == (64 << 20) + 65


UPGRADE = "GET / HTTP/1.1\\r\\nHost: tcp.b.test:%d\\r\\nConnection: Upgrade\\r\\nUpgrade: raw\\r\\n\\r\\n"


def upgraded(t):
    head, _, rest = t.heard.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 101"), t.heard
    return rest


def test_ends_of_an_upgraded_connection(lab, sandbox, served, records):
    t = talk(sandbox, "tcp.b.test", 7080, UPGRADE % 7080, "hear", "\\x01\\x02", "+0.2", "\\x03", "|")
    assert upgraded(t).split() == ["3", hashlib.sha256(b"\1\2\3").hexdigest()] and t.end == "end"
    t = talk(sandbox, "tcp.b.test", 7081, UPGRADE % 7081, "hear", "+0.3", "\\x01\\x02", "+0.3", "\\x03", "|")
    assert (upgraded(t), t.end) == ("that was all\n", "end")
    [x] = lab.wait(lambda: served(port=7081), 5, "the server's word")
    assert (x["bytes"], x["end"]) == (3, "end")
    t = talk(sandbox, "tcp.b.test", 7082, UPGRADE % 7082, "hear", "+0.2", "now")
    assert t.end == "reset"
    assert len(records(kind="tunnel", scheme="http")) == 3


def test_reset_passes_to_the_server_of_an_upgraded_connection(lab, sandbox, served):
    sandbox.python(f"""
import socket, struct, time
s = socket.create_connection(('tcp.b.test', 7083))
s.sendall(b'{UPGRADE % 7083}')
assert b' 101 ' in s.recv(1000)
time.sleep(0.2)
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
s.close()
""", check=True)
    [x] = lab.wait(lambda: served(port=7083), 5, "the server's word")
    assert x["end"] == "reset"


# -- changes ------------------------------------------------------------------------------------

@contextlib.contextmanager
def held(sandbox, host, port, words="hear"):
    """A connection that is held until the block ends; .end() is how it ended."""
    code = CLIENT.replace("heard, end = time", "heard, end = time") + ""
    p = sandbox.popen("/usr/bin/python3", "-c", code, host, port, 4, *words.split(), "mark",
                      stdout=-1, text=True)
    try:
        yield p
    finally:
        p.kill()
        p.wait()


def sessions(lab):
    return lab.admin.get("/v1/status")


def test_change_of_policy_cuts_what_it_denies(lab, sandbox, records):
    with held(sandbox, "tcp.b.test", 7005) as spoken, held(sandbox, "tcp.b.test", 7007, "+0.6") as other:
        time.sleep(0.9)  # one greeted; both said "mark", and one of them was echoed
        with only(lab, *POLICY["egress"], {"action": "allow", "target": "new.b.test"}):
            time.sleep(0.2)
            assert spoken.poll() is None and other.poll() is None
        with only(lab, {"action": "allow", "target": "tcp.b.test", "ports": [7007]}):
            out, _ = spoken.communicate(timeout=5)
            assert out.split()[-2] == "reset"
            assert records.one(kind="tunnel", port=7005)["reason"] == "cut"
            assert other.poll() is None
        with only(lab, {"action": "allow", "target": "tcp.b.test", "methods": ["GET"]}):
            out, _ = other.communicate(timeout=5)
            assert out.split()[-2] == "reset"


def test_change_of_policy_cuts_what_is_still_silent(lab, sandbox, records):
    with held(sandbox, "tcp.b.test", 7007, "+8") as silent:
        time.sleep(0.8)
        assert silent.poll() is None
        with only(lab, {"action": "allow", "target": "free.lab.test"}):
            assert records.one(kind="connect", port=7007)["reason"] == "cut"
        assert silent.poll() is None  # asleep; its connection is gone
        silent.kill()


# -- tunnels that idle ------------------------------------------------------------------------------

IDLE = """
import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
address, n = sys.argv[1], int(sys.argv[2])
all = []
for _ in range(n):
    s = socket.create_connection((address, 3306), timeout=20)
    assert s.recv(200)
    all.append(s)
print('ready', flush=True)
sys.stdin.readline()
for s in all:
    s.sendall(b'login')
    assert len(s.recv(200)) == 11
print('all answered', flush=True)
sys.stdin.readline()
"""


def rss(pid):
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) * 1024


def descriptors(lab):
    return len(os.listdir(f"/proc/{lab.role_pid('gateway')}/fd"))


def hold_idle(lab, sandbox, n):
    p = sandbox.popen("/usr/bin/python3", "-c", IDLE, OPEN[0], n, stdin=-1, stdout=-1, text=True)
    try:
        assert p.stdout.readline() == "ready\n"
        yield p
        p.stdin.write("\n")
        p.stdin.flush()
        assert p.stdout.readline() == "all answered\n"
    finally:
        p.kill()
        p.wait()


def test_1000_idle_tunnels(lab, sandbox, capsys):
    with only(lab, {"action": "allow", "target": OPEN[0], "ports": [3306]}):
        pid, before = lab.role_pid("gateway"), descriptors(lab)
        with contextlib.contextmanager(hold_idle)(lab, sandbox, 100):
            pass  # what grows once
        lab.wait(lambda: descriptors(lab) <= before + 2, 10, "descriptors to be given back")
        empty = rss(pid)
        with contextlib.contextmanager(hold_idle)(lab, sandbox, 1000):
            each = (rss(pid) - empty) // 1000
            fds = descriptors(lab) - before
        with capsys.disabled():
            print(f"\n1000 idle tunnels: {each} bytes and {fds / 1000:.2f} descriptors each")
        assert 1990 <= fds <= 2040
        assert each < 8192
        lab.wait(lambda: descriptors(lab) <= before + 2, 20, "descriptors to be given back")  # case 48


def test_keepalive_on_both_legs(lab, sandbox):
    with held(sandbox, "tcp.b.test", 7005):
        def probed():
            out = run("ip", "netns", "exec", lab.gw, "ss", "-Htno", "( dport = :7005 or sport = :7005 )").stdout
            lines = [line for line in out.splitlines() if "ESTAB" in line]
            return len(lines) == 2 and all("keepalive" in line for line in lines)
        lab.wait(probed, 10, "a timer on either leg")


def test_idle_tunnel_lives_as_long_as_it_is_told(lab, sandbox, records):
    t = talk(sandbox, "tcp.b.test", 7007, "\\x01", "hear", f"+{TUNNEL_IDLE_S - 2}", "\\x02", "hear")
    assert t.heard == "\1\2" and t.end == "reset"
    assert 2 * TUNNEL_IDLE_S - 2.5 < t.seconds < 2 * TUNNEL_IDLE_S + 2


def test_client_that_closed_without_a_word_is_no_leak(lab, sandbox):
    """Case 48: nobody says whether it listens, so it is waited for idleMs (3 s)."""
    before = descriptors(lab)
    sandbox.python("import socket\nfor _ in range(50):\n"
                   " socket.create_connection(('tcp.b.test', 7001), timeout=5).close()")
    lab.wait(lambda: descriptors(lab) <= before + 2, 8, "descriptors to be given back")
