# SPDX-License-Identifier: Apache-2.0
"""The audit: one true line per exchange, whatever bytes were in it, and however
many came at once."""
import contextlib
import datetime
import http.client
import json
import os
import re
import select
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
from conftest import HERE, SECRET, open_lab
from lab import BIN, ORIGIN4, SOURCE, run

API = "https://api.lab.test"


@pytest.fixture(scope="module")
def lab():
    with open_lab("u") as lab:
        yield lab


def documented():
    """member -> type, from docs/formats.md."""
    text = (SOURCE / "docs/formats.md").read_text().split("\n## audit\n")[1].split("\n## ")[0]
    types = {}
    for line in text.splitlines():
        m = re.match(r"\| (`[^|]+`) \| ([a-z, ]+) \|", line)
        if m:
            names, kinds = re.findall(r"`(\w+)`", m[1]), m[2].strip().split(", ")
            types |= {n: kinds[min(i, len(kinds) - 1)] for i, n in enumerate(names)}
    return types


def reasons():
    text = (SOURCE / "gateway/audit/reason.def").read_text()
    return {r.lower() for r in re.findall(r"AUDIT_REASON\((\w+)", text)}


IS = {
    "time": lambda v: datetime.datetime.strptime(v, "%Y-%m-%dT%H:%M:%S.%fZ") and len(v) == 24,
    "word": lambda v: re.fullmatch(r"[A-Za-z0-9_.]+", v), "text": lambda v: isinstance(v, str) and v,
    "address": lambda v: re.fullmatch(r"([0-9.]+|\[[0-9a-f:]+\]):\d+", v),
    "number": lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= 0,
    "flag": lambda v: v is True,
}


def raw(sandbox, kind, text, sni="api.lab.test", address=ORIGIN4):
    data = text if isinstance(text, bytes) else text.encode("latin1")
    return sandbox.run("/usr/bin/python3", HERE / "raw.py", kind, address,
                       "443" if kind == "tls" else "80", *([sni] if kind == "tls" else []), input=data,
                       env=sandbox.env() | {"WAIT": "2"})


class Lines:
    """Records that were written since it was made."""

    def __init__(self, lab):
        self.lab, self.mark = lab, len(lab.audit_text().encode()) if lab.audit_path.exists() else 0

    def bytes(self):
        if not self.lab.audit_path.exists():
            return b""
        with open(self.lab.audit_path, "rb") as f:
            f.seek(self.mark)
            return f.read()

    def all(self):
        return [json.loads(line) for line in self.bytes().decode().splitlines()]

    def wait(self, **match):
        def there():
            return [r for r in self.all() if all(r.get(k) == v for k, v in match.items())]
        return self.lab.wait(there, 5, f"a record with {match}, found {self.bytes().decode()}")[-1]


@pytest.fixture
def lines(lab):
    return Lines(lab)


# -- what is in a record ---------------------------------------------------------

def test_allowed_exchange(lab, sandbox, lines):
    before = time.time()
    status, _, _ = sandbox.curl("-d", "x" * 1000, f"{API}/slow/0.3/?token=query-of-the-url")
    assert status == 200
    r = lines.wait(path="/slow/0.3/")
    assert len(lines.all()) == 1
    when = datetime.datetime.strptime(r["time"] + "+0000", "%Y-%m-%dT%H:%M:%S.%fZ%z").timestamp()
    assert before <= when + 0.002 and when <= time.time()
    assert r["kind"] == "http" and r["sandbox"] == sandbox.id and r["verdict"] == "allow"
    assert r["client"].startswith(sandbox.v4 + ":") or r["client"].startswith(f"[{sandbox.v6}]:")
    assert r["scheme"] == "https" and r["host"] == "api.lab.test" and r["port"] == 443
    assert r["original"] == r["address"]  # we dialled where the sandbox went
    assert r["tls"] == "TLSv1.3" and r["originTls"] == "TLSv1.3" and r["inspected"] is True
    assert r["policy"] == "lab" and r["decidedBy"] and "api.lab.test" in r["rule"]
    assert r["method"] == "POST" and r["status"] == 200
    assert r["binding"] == "api" and r["injected"] is True
    assert r["revision"] == lab.admin.get("/v1/bindings/api")["revision"]
    assert r["bytesOut"] == 1000 and r["bytesIn"] > 100
    assert 0 < r["decidedUs"] <= r["connectedUs"] <= r["firstByteUs"] <= r["totalUs"] < 5_000_000
    assert r["firstByteUs"] >= 300_000
    assert "reason" not in r and "detail" not in r
    assert b"query-of-the-url" not in lines.bytes() and SECRET.encode() not in lines.bytes()


def test_denied_exchange(lab, sandbox, lines, origin_seen):
    assert sandbox.curl("https://limited.lab.test/no?key=q")[0] == 403
    r = lines.wait(path="/no")
    assert (r["verdict"], r["reason"], r["status"], r["kind"]) == ("deny", "policy", 403, "http")
    assert r["policy"] == "lab" and r["ruleFile"] and r["host"] == "limited.lab.test"
    assert not {"injected", "binding", "address", "firstByteUs", "originTls"} & set(r)
    assert not origin_seen(path="/no")


def test_tunnel(lab, sandbox, lines):
    size = 100_000
    r = sandbox.run("curl", "-sS", "--cacert", lab.origin_ca, "-o", "/dev/null",
                    f"https://plain.lab.test/big/{size}")
    assert r.returncode == 0, r.stderr
    r = lines.wait(kind="tunnel")
    assert r["host"] == "plain.lab.test" and r["verdict"] == "allow" and r["scheme"] == "https"
    assert size < r["bytesIn"] < size + 10_000 and 200 < r["bytesOut"] < 10_000
    assert not {"inspected", "method", "path", "status", "tls", "reason"} & set(r)
    assert len(lines.all()) == 1


def test_upgraded_connection(lab, sandbox, lines):
    raw(sandbox, "tls", "GET /upgrade?q HTTP/1.1\r\nHost: api.lab.test\r\nConnection: Upgrade\r\n"
        "Upgrade: lab-echo\r\n\r\nPAUSE\n0123456789")
    r = lines.wait(kind="tunnel", path="/upgrade")
    assert r["status"] == 101 and r["injected"] and r["bytesOut"] == 10 and r["bytesIn"] == 10
    assert len(lines.all()) == 1


def test_question_and_connection_denied(lab, sandbox, lines):
    sandbox.curl("https://denied.lab.test/")
    r = lines.wait(kind="dns", host="denied.lab.test")
    assert (r["verdict"], r["reason"], r["scheme"], r["port"]) == ("deny", "policy", "dns", 53)
    assert "bytesIn" not in r and r["detail"]
    sandbox.curl("--resolve", f"denied.lab.test:443:{ORIGIN4}", "https://denied.lab.test/")
    r = lines.wait(kind="connect", host="denied.lab.test")
    assert (r["verdict"], r["reason"], r["original"]) == ("deny", "policy", f"{ORIGIN4}:443")
    assert "address" not in r and r["scheme"] == "https"


def test_failures_say_why(lab, sandbox, lines):
    expected = {"/nothing": "origin_failed", "/bad-head": "origin_failed", "/broken": "origin_failed"}
    for path, reason in expected.items():
        sandbox.run("curl", "-sS", "-X", "POST", "-d", "x", f"{API}{path}?q=1")
        assert lines.wait(path=path)["reason"] == reason
        assert lines.wait(path=path)["detail"], path
    raw(sandbox, "tls", "GET /421?q HTTP/1.1\r\nHost: plain.lab.test\r\nConnection: close\r\n\r\n")
    r = lines.wait(path="/421")
    assert (r["reason"], r["status"], r["verdict"]) == ("misdirected", 421, "deny")
    start = time.monotonic()
    sandbox.python(f"""
import socket, ssl, struct, time
s = ssl.create_default_context().wrap_socket(socket.create_connection(('{ORIGIN4}', 443)),
                                             server_hostname='api.lab.test')
s.sendall(b'GET /slow/8 HTTP/1.1\\r\\nHost: api.lab.test\\r\\n\\r\\n')
time.sleep(0.3)
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))  # a reset
s.close()
""", check=True)
    assert lines.wait(path="/slow/8")["reason"] == "client_aborted"
    assert time.monotonic() - start < 4
    with lab.policy([{"action": "allow", "target": "free.lab.test"}], inspect=["free.lab.test"]):
        # a name that leads nowhere we may go
        sandbox.curl("-k", "--resolve", f"free.lab.test:443:{ORIGIN4}", "https://free.lab.test/x")
    assert lines.wait(host="free.lab.test")["reason"] == "no_allowed_address"


def test_redactions_are_counted(lab, sandbox, lines):
    sandbox.curl(f"{API}/reflect")
    assert lines.wait(path="/reflect")["redactions"] == 3


# -- hostile bytes ---------------------------------------------------------------

FORGED = '"},{"verdict":"allow","sandbox":"sandbox-2'
PATHS = [b"/a\"b\\c", b"/" + FORGED.replace(" ", "").encode(), b"/\xc3\xa4\xff\xfe\x80", b"/<script>&'",
         b"/%0a%0d%00%22", b"/\\u0022\\", b"/" + b"p" * 9000, "/\u2028\u202e".encode()]


@pytest.mark.parametrize("path", PATHS, ids=range(len(PATHS)))
@pytest.mark.parametrize("kind", ["tls", "tcp"])
def test_hostile_paths_stay_inside_their_string(lab, sandbox, lines, path, kind):
    raw(sandbox, kind, b"GET " + path + b"?q=hidden HTTP/1.1\r\nHost: api.lab.test\r\n"
        b"Connection: close\r\n\r\n")
    r = lines.wait(scheme="https" if kind == "tls" else "http")
    assert len(lines.all()) == 1 and lines.bytes().count(b"\n") == 1
    assert r["sandbox"] == sandbox.id and b"hidden" not in lines.bytes()
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", lines.bytes())
    if "path" in r:
        assert r["path"].startswith("/" + path[1:2].decode("latin1")[:1]) or path[1] >= 0x80
    assert "allow" == r["verdict"] or r["status"] in (400, 403)


@pytest.mark.parametrize("host", ["a\"b", "x\\", "\x01\x02", "\xff\xfe", FORGED, "a b", "a\tb", "é.lab.test",
                                  "a" * 300, "<b>.lab.test", "%0a"])
def test_hostile_hosts(lab, sandbox, lines, host):
    for kind in ("tls", "tcp"):
        raw(sandbox, kind, f"GET /h?hidden HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
    lab.wait(lambda: len(lines.all()) >= 2, 5, "two records")
    text = lines.bytes()
    assert text.count(b"\n") == 2 and b"hidden" not in text
    assert all(r["verdict"] == "deny" and r["sandbox"] == sandbox.id for r in lines.all())
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", text)


@pytest.mark.parametrize("label", [rb"\"", rb"a\nb", rb"\0", rb"\xff\xfe", rb"\\", rb"}\x7b", b"a b"])
def test_hostile_names_in_questions_and_hellos(lab, sandbox, lines, label):
    sandbox.python(f"""
import socket, struct, ssl
label = b'{label.decode()}'
q = struct.pack('>HHHHHH', 1, 0x100, 1, 0, 0, 0) + bytes([len(label)]) + label + b'\\3lab\\4test\\0\\0\\1\\0\\1'
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1)
s.sendto(q, ('8.8.8.8', 53))
try: s.recv(2000)
except TimeoutError: pass
name = label + b'.lab.test'
sni = struct.pack('>HHBH', 0, len(name) + 5, 0, 0)[:0] + struct.pack('>H', len(name) + 3) + b'\\0' + struct.pack('>H', len(name)) + name
ext = struct.pack('>HH', 0, len(sni)) + sni
body = b'\\3\\3' + bytes(32) + b'\\0' + b'\\0\\2\\x13\\1' + b'\\1\\0' + struct.pack('>H', len(ext)) + ext
hello = b'\\1' + struct.pack('>I', len(body))[1:] + body
c = socket.create_connection(('{ORIGIN4}', 443), timeout=2)
c.sendall(b'\\x16\\3\\1' + struct.pack('>H', len(hello)) + hello)
try: print(c.recv(100))
except OSError as e: print(e)
""")
    lab.wait(lambda: {"connect", "dns"} <= {r["kind"] for r in lines.all()}, 5, "both records")
    text = lines.bytes()
    assert text.count(b"\n") == len(lines.all()) == 2
    assert all(r["verdict"] == "deny" for r in lines.all())
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", text)


# -- many at once ------------------------------------------------------------------

def counters(lab):
    return lab.admin.get("/v1/status")["gateway"]["counters"]


def test_two_hundred_at_once_are_two_hundred_lines(lab, sandbox, neighbour, lines):
    before = counters(lab)
    clients = []
    for s in (sandbox, neighbour):
        # allowed with a credential, refused by path, and in the clear
        urls = [f"https://api.lab.test/many/{s.number}/{i}" for i in range(50)] + \
               [f"https://limited.lab.test/many/{s.number}/{i}" for i in range(30)] + \
               [f"http://plain.lab.test/many/{s.number}/{i}" for i in range(20)]
        config = lab.tmp / f"many-{s.number}"
        config.write_text("".join(f'url = "{u}"\noutput = "/dev/null"\n' for u in urls))
        clients.append(s.popen("curl", "-s", "--http1.1", "-Z", "--parallel-max", "100",
                               "--parallel-immediate", "--max-time", "60", "-w", "%{http_code}\n", "-K", config,
                               stdout=subprocess.PIPE, text=True))
    for c in clients:
        answers = c.stdout.read().split()
        assert c.wait(60) == 0
        assert sorted(answers) == ["200"] * 70 + ["403"] * 30
    lab.wait(lambda: len(lines.all()) >= 200, 5, "all lines")
    text, records = lines.bytes(), lines.all()
    assert text.count(b"\n") == len(records) == 200 and text.endswith(b"}\n")
    for s in (sandbox, neighbour):
        mine = [r for r in records if r["sandbox"] == s.id]
        assert sorted((r["host"], r["path"]) for r in mine) == sorted(
            (h, f"/many/{s.number}/{i}") for h, n in (("api.lab.test", 50), ("limited.lab.test", 30),
                                                      ("plain.lab.test", 20)) for i in range(n))
        assert all((r["verdict"] == "deny") == (r["host"] == "limited.lab.test") for r in mine)
        assert all(r.get("injected", False) == (r["host"] == "api.lab.test") for r in mine)
        assert all(r["client"].startswith((s.v4, f"[{s.v6}]")) for r in mine)
    grown = {k: v - before[k] for k, v in counters(lab).items()}
    assert grown["exchanges"] == 200 and grown["connections"] > 100
    assert grown["allowed"] == 140 and grown["denied"] == 60 and grown["injected"] == 100
    lab.wait(lambda: counters(lab)["connections_open"] == before["connections_open"], 5, "the end")


MANY = """
import http.client, socket, ssl, struct, sys, time
c = http.client.HTTPSConnection('limited.lab.test', context=ssl.create_default_context(cafile=sys.argv[1]))
for i in range(1500):
    c.request('GET', f'/denied/{i}')
    r = c.getresponse()
    r.read()
    assert r.status == 403, r.status
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(2)
for i in range(400):
    name = b'x%d' % i
    s.sendto(struct.pack('>HHHHHH', i, 0x100, 1, 0, 0, 0) + bytes([len(name)]) + name + b'\\4evil\\4test\\0\\0\\1\\0\\1',
             (sys.argv[2], 53))
    s.recv(2000)
"""


def test_many_denials_are_few_lines_that_count_them(lab, sandbox, neighbour, lines):
    """A sandbox does not fill the disk, nor does it hide what another is denied."""
    began = time.monotonic()
    p = sandbox.popen("/usr/bin/python3", "-c", MANY, sandbox.env()["SSL_CERT_FILE"], sandbox.gw4)
    lab.wait(lambda: len(lines.all()) >= 50, 20, "the first of them")
    neighbour.curl("https://limited.lab.test/denied/neighbour")
    assert p.wait(60) == 0
    took = time.monotonic() - began
    lab.wait(lambda: sum(r.get("alike", 1) for r in lines.all() if r["sandbox"] == sandbox.id) >= 1900, 5,
             "all to be counted")
    mine = [r for r in lines.all() if r["sandbox"] == sandbox.id]
    assert {r["verdict"] for r in mine} == {"deny"} and {r["reason"] for r in mine} == {"policy"}
    for kind, count in (("http", 1500), ("dns", 400)):
        assert sum(r.get("alike", 1) for r in mine if r["kind"] == kind) == count, kind
    # a hundred and two sums, a second and an event loop
    assert len(mine) <= 102 * os.cpu_count() * (took + 2) and len(mine) < 1900, len(mine)
    assert [r for r in mine if "alike" in r]
    assert [r for r in lines.all() if r.get("path") == "/denied/neighbour"]


# -- reading it ------------------------------------------------------------------------

class Tail:
    """GET /v1/audit/tail, event by event."""

    def __init__(self, lab, query):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(5)
        self.sock.connect(str(lab.admin.path))
        conn = http.client.HTTPConnection("s")
        conn.sock = self.sock
        conn.request("GET", "/v1/audit/tail" + query)
        self.reply = conn.getresponse()

    def next(self):
        line = self.reply.readline()
        assert line.startswith(b"data: "), line
        assert self.reply.readline() == b"\n"
        return json.loads(line[6:])

    def close(self):
        self.sock.close()


def test_tail_gives_the_end_and_then_what_comes(lab, sandbox, neighbour):
    for i in range(6):
        sandbox.curl(f"{API}/old/{i}")
    lab.record(path="/old/5")
    tail = Tail(lab, "?lines=3&follow=true")
    assert tail.reply.status == 200
    assert tail.reply.getheader("Content-Type").startswith("text/event-stream")
    assert [tail.next()["path"] for _ in range(3)] == ["/old/3", "/old/4", "/old/5"]
    only = Tail(lab, f"?lines=0&follow=1&sandbox={neighbour.id}")
    start = time.monotonic()
    sandbox.curl(f"{API}/new/1")
    assert tail.next()["path"] == "/new/1" and time.monotonic() - start < 1.5
    neighbour.curl(f"{API}/new/2")
    assert tail.next()["path"] == "/new/2" and only.next()["path"] == "/new/2"
    # over a rotation
    moved = lab.audit_path.with_suffix(".1")
    lab.audit_path.rename(moved)
    lab.daemon.send_signal(signal.SIGHUP)
    lab.wait(lab.audit_path.exists, 5, "the new file")
    sandbox.curl(f"{API}/new/3")
    assert tail.next()["path"] == "/new/3"
    assert '"/new/3"' in lab.audit_text() + moved.read_text()
    tail.close()
    only.close()


def test_follower_is_told_while_the_writing_goes_on(lab, sandbox):
    busy, stop = lab.audit_path.with_suffix(".busy"), threading.Event()

    def write():
        with open(busy, "ab", buffering=0) as f:
            while not stop.wait(0.002):
                f.write(b".")

    writer = threading.Thread(target=write)
    tail = Tail(lab, "?lines=0&follow=true")
    writer.start()
    try:
        start = time.monotonic()
        sandbox.curl(f"{API}/busy")
        assert tail.next()["path"] == "/busy" and time.monotonic() - start < 1.5
    finally:
        stop.set()
        writer.join()
        tail.close()
        busy.unlink()


def test_control_sleeps_while_nobody_follows(lab, sandbox):
    control = lab.role_pid("control")

    def waits():
        text = Path(f"/proc/{control}/status").read_text()
        return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", text, re.M)[1])

    before = waits()
    for i in range(20):
        sandbox.curl(f"{API}/unseen/{i}")
    lab.record(path="/unseen/19")
    assert waits() - before < 20


def test_tail_ends_without_follow_and_refuses_nonsense(lab, sandbox):
    sandbox.curl(f"{API}/end")
    lab.record(path="/end")
    status, text = lab.admin.call("GET", "/v1/audit/tail?lines=1")
    assert status == 200 and json.loads(text.removeprefix("data: "))["path"] == "/end"
    for query in ("?lines=x", "?lines=-1", "?lines=10001"):
        status, reply = lab.admin.call("GET", "/v1/audit/tail" + query)
        assert status == 400 and "lines" in reply["message"]
    assert lab.admin.call("GET", "/v1/audit/tail?lines=0") == (200, "")


@contextlib.contextmanager
def cli(lab, *args):
    p = subprocess.Popen([str(x) for x in (BIN / "sallyport", "audit", "tail", "--socket", lab.admin.path,
                                           *args)], stdout=subprocess.PIPE, text=True)
    try:
        yield p
    finally:
        p.kill()
        p.wait()


def test_cli_tails(lab, sandbox):
    for path in ("/cli/1", "/cli/2"):
        sandbox.curl(f"{API}{path}")
        lab.record(path=path)
    r = run(BIN / "sallyport", "audit", "tail", "-n", "2", "--socket", lab.admin.path)
    first, second = r.stdout.splitlines()
    assert "https://api.lab.test/cli/1" in first and "https://api.lab.test/cli/2" in second
    assert "allow" in first and "injected api" in first and sandbox.id in first and " 200" in first
    r = run(BIN / "sallyport", "audit", "tail", "-n", "1", "--json", "--socket", lab.admin.path)
    assert json.loads(r.stdout) == lab.record(path="/cli/2")
    with cli(lab, "-f", "-n", "0") as p:
        time.sleep(0.3)
        raw(sandbox, "tls", "GET /cli/\xc2\x9b31m HTTP/1.1\r\nHost: api.lab.test\r\nConnection: close\r\n\r\n")
        assert select.select([p.stdout], [], [], 5)[0], "no line came"
        line = p.stdout.readline()
        assert "/cli/" in line and not re.search("[^ -~\n]", line), repr(line)


def test_every_line_of_this_file_is_as_documented(lab):
    types, why, kinds = documented(), reasons(), set()
    assert len(types) > 30 and len(why) > 15
    count = 0
    for file in (lab.audit_path.with_suffix(".1"), lab.audit_path):
        for line in file.read_text().splitlines():
            record = json.loads(line, object_pairs_hook=lambda pairs: pairs)
            names = [k for k, _ in record]
            assert len(names) == len(set(names)), line
            record = dict(record)
            if record["kind"] == "packet":  # what a sandbox's kernel says by itself
                continue
            assert {"time", "kind", "verdict", "totalUs"} <= set(record), line
            for name, value in record.items():
                assert name in types, f"{name} is not documented: {line}"
                assert IS[types[name]](value), (name, line)
            assert record["kind"] in ("http", "tunnel", "dns", "connect")
            assert record["verdict"] in ("allow", "deny")
            assert record.get("reason", "policy") in why, line
            assert record["verdict"] == "allow" or "reason" in record, line
            assert "?" not in record.get("path", "") and SECRET not in line
            kinds.add(record["kind"])
            count += 1
    assert kinds == {"http", "tunnel", "dns", "connect"} and count > 250
