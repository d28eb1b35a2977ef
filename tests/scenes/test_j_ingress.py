# SPDX-License-Identifier: Apache-2.0
"""From outside to the ports of sandboxes: routes, tokens, streaming both ways, upgrades,
what goes inside of a head, and that nobody inside gets more of the node by it."""
import asyncio
import hashlib
import http.client
import json
import signal
import socket
import ssl
import subprocess
import time
from pathlib import Path

import pytest
from conftest import open_lab
from lab import GATEWAY_O4, ORIGIN4, run

PORT = 8081
EXECD, SECURE = "execd-token-of-the-lab", "secure-token-of-the-lab"
PREFIX = "OpenSandbox Ingress: "
POWERED = "Reverse-Proxy-Server-PowerBy"

# a server inside: says what it was asked, streams, counts what it is sent
INSIDE = r"""
import http.server, json, socket, sys, time

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            total = 0
            while (size := int(self.rfile.readline(), 16)):
                total += len(self.rfile.read(size)); self.rfile.readline()
            self.rfile.readline()
            return total
        return len(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def answer(self):
        if self.path.startswith("/events"):
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for i in range(5):
                piece = f"data: {i}\n\n".encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece)); self.wfile.flush()
                time.sleep(0.2)
            self.wfile.write(b"0\r\n\r\n")
            return
        if self.path.startswith("/big"):
            self.send_response(200)
            self.send_header("Content-Length", str(64 << 20))
            self.end_headers()
            sent = 0
            try:
                while sent < 64 << 20:
                    sent += self.connection.send(b"x" * 65536)
                    open(sys.argv[2], "w").write(str(sent))
            except OSError:
                pass
            return
        text = json.dumps({"method": self.command, "path": self.path, "bytes": self.body(),
                           "headers": [list(h) for h in self.headers.items()]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("X-Inside", "yes")
        self.send_header("Connection", "X-Hop")
        self.send_header("X-Hop", "1")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = answer

    def log_message(self, *args):
        pass

class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
    daemon_threads = True

servers = [Server((sys.argv[1], int(p)), Handler) for p in sys.argv[3:]]
import threading
for s in servers:
    threading.Thread(target=s.serve_forever).start()
print("ready", flush=True)
"""


def inside(lab, sandbox, address, *ports):
    ready = lab.tmp / f"inside-{sandbox.number}-{len(lab.procs)}"
    sandbox.sent = lab.tmp / f"sent-{sandbox.number}"
    lab.procs.append(sandbox.popen("/usr/bin/python3", "-c", INSIDE, address, sandbox.sent, *ports,
                                   stdout=open(ready, "wb")))
    lab.wait(ready.read_text, 5, "the server inside")


def digest(token):
    return hashlib.sha256(token.encode()).hexdigest()


def register(lab, sandbox, **ingress):
    status, reply = lab.admin.call("PUT", f"/v1/sandboxes/{sandbox.id}", {
        "interface": sandbox.iface, "addresses": [sandbox.v4, sandbox.v6], "labels": {},
        "ingress": ingress})
    assert status in (200, 201), reply
    return reply


@pytest.fixture(scope="module", params=["http", "https"])
def lab(request):
    tls = request.param == "https"

    def prepare(lab):
        config = {"listen": f"{GATEWAY_O4}:{PORT}"}
        if tls:
            crt, key = lab.leaf("ingress", GATEWAY_O4)
            config |= {"certificate": str(crt), "key": str(key)}
        lab.extra_config["ingress"] = config

    with open_lab("ji" + request.param[-1], config={"loops": 2}, prepare=prepare) as lab:
        lab.tls = tls
        one, two = lab.sandboxes
        inside(lab, one, "0.0.0.0", 8000, 44772)
        inside(lab, two, two.v6, 8000)
        register(lab, one, execdTokenSha256=digest(EXECD))
        register(lab, two, secureTokenSha256=digest(SECURE))
        yield lab


class Reply:
    def __init__(self, r):
        self.status, self.headers, self.body = r.status, r.headers, r.read()
        self.text = self.body.decode(errors="replace")

    @property
    def seen(self):
        return json.loads(self.text)

    def sent(self, name):
        """What the server inside got under that name."""
        return [v for k, v in self.seen["headers"] if k.lower() == name.lower()]


def connect(lab):
    """From the origin's namespace: the outside. A thread of its own enters it."""
    out = {}

    def dial():
        with open(f"/run/netns/{lab.org}") as ns:
            import ctypes
            assert ctypes.CDLL(None, use_errno=True).setns(ns.fileno(), 0x40000000) == 0
        s = socket.create_connection((GATEWAY_O4, PORT), 10)
        if lab.tls:
            context = ssl.create_default_context(cafile=str(lab.origin_ca))
            s = context.wrap_socket(s, server_hostname=GATEWAY_O4)
        out["s"] = s

    import threading
    t = threading.Thread(target=dial)
    t.start()
    t.join()
    return out["s"]


def ask(lab, path, method="GET", body=None, headers=None):
    c = http.client.HTTPConnection(GATEWAY_O4, PORT)
    c.sock = connect(lab)
    c.request(method, path, body, headers or {}, encode_chunked=hasattr(body, "__next__"))
    r = Reply(c.getresponse())
    c.close()
    return r


def path(sandbox, port, rest="/"):
    return f"/sandboxes/{sandbox.id}/proxy/{port}{rest}"


# -- routes -------------------------------------------------------------------------------

def test_status(lab):
    r = ask(lab, "/status.ok")
    assert (r.status, r.text) == (200, "OK")


@pytest.mark.parametrize("form", ["server", "v1", "uri", "header", "old-header"])
def test_forms_of_routes(lab, form):
    one = lab.sandboxes[0]
    label = f"{one.id}-8000"
    where, headers, prefix = {
        "server": (path(one, 8000, "/a/%2F?q=1"), {}, path(one, 8000, "")),
        "v1": ("/v1" + path(one, 8000, "/a/%2F?q=1"), {}, "/v1" + path(one, 8000, "")),
        "uri": (f"/{one.id}/8000/a/%2F?q=1", {}, f"/{one.id}/8000"),
        "header": ("/a/%2F?q=1", {"OpenSandbox-Ingress-To": label}, None),
        "old-header": ("/a/%2F?q=1", {"OPEN-SANDBOX-INGRESS": label}, None),
    }[form]
    r = ask(lab, where, headers=headers)
    assert r.status == 200 and r.seen["path"] == "/a/%2F?q=1", r.text
    assert r.headers[POWERED] == "OpenSandbox-ingress" and r.headers["X-Inside"] == "yes"
    assert r.headers["X-Hop"] is None
    assert r.sent("X-Forwarded-Prefix") == ([prefix] if prefix else [])
    record = lab.record(kind="ingress", path="/a/%2F")
    assert record["verdict"] == "allow" and record["status"] == 200 and record["port"] == 8000
    assert record["client"].startswith(ORIGIN4) and record["sandbox"] == one.id


@pytest.mark.parametrize("where,status,sentence", [
    ("/", 400, "names no port"), ("/sandboxes/sandbox-1/proxy/0/", 400, "1 to 65535"),
    ("/sandboxes/sandbox-1/proxy/99999/", 400, "1 to 65535"),
    ("/sandboxes/sandbox-9/proxy/8000/", 404, "no such sandbox"),
    ("/sandboxes/sandbox-1/proxy/8001/", 502, "Bad Gateway"),
])
def test_refusals(lab, where, status, sentence):
    r = ask(lab, where)
    assert r.status == status and r.text.startswith(PREFIX) and sentence in r.text, r.text
    assert lab.record(kind="ingress", status=status)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"])
def test_methods(lab, method):
    r = ask(lab, path(lab.sandboxes[0], 8000), method, b"12345" if method[0] == "P" else None)
    assert r.status == 200
    if method != "HEAD":
        assert r.seen["method"] == method and r.seen["bytes"] == (5 if method[0] == "P" else 0)


# -- tokens -------------------------------------------------------------------------------

def test_the_port_of_execd(lab):
    one = lab.sandboxes[0]
    for headers, status in (({}, 401), ({"X-EXECD-ACCESS-TOKEN": EXECD + "x"}, 401),
                            ({"x-execd-access-token": EXECD}, 200)):
        r = ask(lab, path(one, 44772), headers=headers)
        assert r.status == status, r.text
    assert r.sent("X-EXECD-ACCESS-TOKEN") == [EXECD]
    record = lab.record(kind="ingress", status=401)
    assert record["verdict"] == "deny" and record["reason"] == "access"
    assert EXECD not in lab.audit_text() + lab.log()


def test_a_secured_sandbox(lab):
    two = lab.sandboxes[1]
    for headers, status in (({}, 401), ({"OpenSandbox-Secure-Access": ""}, 401),
                            ({"OpenSandbox-Secure-Access": SECURE[:-1]}, 401),
                            ({"OpenSandbox-Secure-Access": SECURE}, 200)):
        r = ask(lab, path(two, 8000), headers=headers)
        assert r.status == status, r.text
    assert r.sent("OpenSandbox-Secure-Access") == []
    r = ask(lab, f"/{two.id}/8000/vf7lds/eb8c2217a/")
    assert r.status == 503 and "no keys" in r.text


KEYS = {"a": b"0123456789abcdef", "b": b"another key of the lab"}


def signed(sandbox, port, key="a", expires=None):
    """A route as the contract has it: base 36, 32 bits of SHA-256."""
    expires, digits = int(expires or time.time() + 60), "0123456789abcdefghijklmnopqrstuvwxyz"
    text = ""
    while expires:
        text, expires = digits[expires % 36] + text, expires // 36
    canonical = f"v1\nshort\n{sandbox.id}\n{port}\n{text}\n".encode()
    inner = b"".join(len(x).to_bytes(4, "big") + x for x in (KEYS[key], canonical))
    return text, hashlib.sha256(inner).hexdigest()[:8] + key


@pytest.fixture(scope="module")
def keyed(lab):
    """The same daemon with keys, until the end of the module."""
    import base64
    file = lab.tmp / "route.keys"
    file.write_text("# of the lab\n" + "".join(f"{k}={base64.b64encode(v).decode()}\n" for k, v in KEYS.items()))
    file.chmod(0o600)
    lab.stop()
    config = json.loads(lab.config_path.read_text())
    config["ingress"]["keysFile"] = str(file)
    lab.config_path.write_text(json.dumps(config))
    lab.start()
    yield lab


@pytest.mark.parametrize("form", ["uri", "header", "other-key"])
def test_signed_routes(keyed, form):
    two = keyed.sandboxes[1]
    expires, signature = signed(two, 8000, "b" if form == "other-key" else "a")
    where, headers = (f"/{two.id}/8000/{expires}/{signature}/deep?q", {}) if form != "header" else \
        ("/deep?q", {"OpenSandbox-Ingress-To": f"{two.id}-8000-{expires}-{signature}"})
    r = ask(keyed, where, headers=headers)
    assert r.status == 200 and r.seen["path"] == "/deep?q", r.text
    assert signature not in keyed.audit_text() + keyed.log()
    for bad in (signed(two, 8001), signed(two, 8000, expires=time.time() - 5)):
        r = ask(keyed, f"/{two.id}/8000/{bad[0]}/{bad[1]}/deep")
        assert r.status == 401 and r.text.startswith(PREFIX)


def test_failed_signatures_are_few(keyed):
    two = keyed.sandboxes[1]
    expires, signature = signed(two, 8000)
    wrong = ("0" if signature[0] != "0" else "1") + signature[1:]
    seen = [ask(keyed, f"/{two.id}/8000/{expires}/{wrong}/").status for _ in range(12)]
    assert seen[-1] == 429 and set(seen) == {401, 429}
    r = ask(keyed, f"/{two.id}/8000/{expires}/{signature}/")
    assert r.status == 429 and 0 < int(r.headers["Retry-After"]) <= 7
    assert ask(keyed, path(two, 8000), headers={"OpenSandbox-Secure-Access": SECURE}).status == 200


def test_what_is_not_for_the_inside(lab):
    made_up = {"OPEN-SANDBOX-API-KEY": "k", "OPENSANDBOX-EGRESS-AUTH": "e", "X-EXECD-ACCESS-TOKEN": "x",
               "Forwarded": "for=1.2.3.4", "X-Forwarded-For": "1.2.3.4", "X-Forwarded-Host": "h",
               "X-Forwarded-Proto": "gopher", "X-Forwarded-Port": "7", "X-Real-IP": "1.2.3.4",
               "X-Sallyport-Sandbox": "sandbox-2", "Connection": "X-Own", "X-Own": "1",
               "Authorization": "Bearer mine", "Cookie": "c=1", "Origin": "http://o"}
    r = ask(lab, path(lab.sandboxes[0], 8000), headers=made_up)
    assert r.status == 200
    names = {k.lower() for k, _ in r.seen["headers"]}
    for name in ("OPEN-SANDBOX-API-KEY", "OPENSANDBOX-EGRESS-AUTH", "X-EXECD-ACCESS-TOKEN", "Forwarded",
                 "X-Forwarded-Port", "X-Real-IP", "X-Sallyport-Sandbox", "X-Own", "Connection"):
        assert name.lower() not in names, name
    assert r.sent("X-Forwarded-For") == [ORIGIN4]
    assert r.sent("X-Forwarded-Proto") == ["https" if lab.tls else "http"]
    assert r.sent("X-Forwarded-Host") == r.sent("Host") == [f"{GATEWAY_O4}:{PORT}"]
    assert r.sent("Authorization") == ["Bearer mine"] and r.sent("Cookie") == ["c=1"]


# -- bodies -------------------------------------------------------------------------------

def test_large_bodies_in(lab):
    r = ask(lab, path(lab.sandboxes[0], 8000), "POST", b"y" * (20 << 20))
    assert r.seen["bytes"] == 20 << 20
    r = ask(lab, path(lab.sandboxes[0], 8000), "POST", iter([b"z" * 100000] * 50),
            {"Transfer-Encoding": "chunked"})
    assert r.seen["bytes"] == 5000000


def test_events_come_one_by_one(lab):
    c = http.client.HTTPConnection(GATEWAY_O4, PORT)
    c.sock = connect(lab)
    c.request("GET", path(lab.sandboxes[0], 8000, "/events"))
    r = c.getresponse()
    times = []
    while (line := r.readline()):
        if line.startswith(b"data"):
            times.append(time.monotonic())
    assert len(times) == 5 and times[-1] - times[0] > 0.5
    c.close()


def test_a_slow_reader_slows_the_server(lab):
    one = lab.sandboxes[0]
    s = connect(lab)
    s.sendall(f"GET {path(one, 8000, '/big')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    sent = -1

    def stands():
        nonlocal sent
        time.sleep(1)
        before, sent = sent, int(one.sent.read_text() or 0)
        return before == sent
    lab.wait(stands, 20, "the server to stand still")
    assert sent < 48 << 20
    total = 0
    while total < 64 << 20:
        total += len(s.recv(1 << 20))
    s.close()


def test_a_client_that_leaves_is_seen_inside(lab):
    one = lab.sandboxes[0]
    s = connect(lab)
    s.sendall(f"GET {path(one, 8000, '/big')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    s.recv(100)
    s.close()
    lab.wait(lambda: lab.records(kind="ingress", path="/big", reason="origin_failed")
             or lab.records(kind="ingress", path="/big", status=200), 5, "the record")


# -- upgrades -----------------------------------------------------------------------------

WS = Path(__file__).parent / "ws_peer.py"


@pytest.fixture(scope="module")
def ws(lab):
    one = lab.sandboxes[0]
    ready, log = lab.tmp / "ws.ready", lab.tmp / "ws.log"
    lab.procs.append(one.popen("/usr/bin/python3", WS, "serve", "0.0.0.0", "8100", log,
                               stdout=open(ready, "wb")))
    lab.wait(ready.read_text, 5, "the WebSocket server inside")
    return log


WS_CLIENT = r"""
import asyncio, ssl, sys, websockets
async def main(url, ca):
    more = {"ssl": ssl.create_default_context(cafile=ca)} if ca else {}
    async with websockets.connect(url, max_size=1 << 24, compression=None, subprotocols=["lab"],
                                  extra_headers={"Authorization": "Bearer mine"}, **more) as ws:
        for message in ("hello", b"\x00\xff" * 1000, "x" * (1 << 20), b"y" * (8 << 20)):
            await ws.send(message)
            assert await ws.recv() == message
        await (await ws.ping())
        print("ok", ws.subprotocol, ws.response_headers["Reverse-Proxy-Server-PowerBy"])
asyncio.run(main(*sys.argv[1:]))
"""


def test_websocket(lab, ws):
    one = lab.sandboxes[0]
    url = f"{'wss' if lab.tls else 'ws'}://{GATEWAY_O4}:{PORT}{path(one, 8100, '/chat')}"
    r = run("ip", "netns", "exec", lab.org, "/usr/bin/python3", "-c", WS_CLIENT, url,
            lab.origin_ca if lab.tls else "")
    assert r.stdout.split() == ["ok", "lab", "OpenSandbox-ingress"]
    headers = {k.lower(): v for k, v in json.loads(ws.read_text().splitlines()[-1]).items()}
    assert headers["authorization"] == "Bearer mine" and headers["x-forwarded-for"] == ORIGIN4
    record = lab.record(kind="ingress", path="/chat", status=101)
    assert record["bytesIn"] > 9 << 20 and record["bytesOut"] > 9 << 20


def test_an_upgrade_that_is_written_in_other_ways(lab, ws):
    s = connect(lab)
    s.sendall(f"GET {path(lab.sandboxes[0], 8100)} HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, upgrade\r\n"
              "Upgrade: WebSocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
              "Sec-WebSocket-Version: 13\r\n\r\n".encode())
    assert s.recv(4096).startswith(b"HTTP/1.1 101")
    s.close()


# -- the sandbox goes, and what it may not -------------------------------------------------

def test_a_sandbox_that_goes_takes_its_connections(lab, ws):
    one = lab.sandboxes[0]
    s = connect(lab)
    s.sendall(f"GET {path(one, 8000, '/big')} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    s.recv(100)
    lab.admin.call("DELETE", f"/v1/sandboxes/{one.id}", expect=204)
    try:
        got = 0
        while (piece := s.recv(1 << 20)):
            got += len(piece)
        assert got < 64 << 20
    except (ConnectionError, ssl.SSLError):
        pass
    s.close()
    assert ask(lab, path(one, 8000)).status == 404
    register(lab, one, execdTokenSha256=digest(EXECD))
    assert ask(lab, path(one, 8000)).status == 200


def test_a_new_gateway_knows_it_all(lab):
    import os
    import signal
    os.kill(lab.role_pid("gateway"), signal.SIGKILL)

    def again():
        try:
            return ask(lab, path(lab.sandboxes[0], 8000)).status == 200
        except OSError:
            return False
    lab.wait(again, 15, "the ingress of the next gateway")


def test_a_restart_lets_exchanges_finish_and_forgets_nothing(lab):
    import threading
    c = http.client.HTTPConnection(GATEWAY_O4, PORT)
    c.sock = connect(lab)
    c.request("GET", path(lab.sandboxes[0], 8000, "/events"))
    r = c.getresponse()
    assert b"data: 0" in r.readline()
    stop = threading.Thread(target=lab.stop)
    stop.start()
    assert r.read().count(b"data") == 4
    c.close()
    stop.join()
    lab.start()
    assert ask(lab, path(lab.sandboxes[0], 8000)).status == 200
    assert ask(lab, path(lab.sandboxes[1], 8000)).status == 401


@pytest.mark.parametrize("nf_call", [0, 1])
def test_a_sandbox_at_a_port_of_a_bridge(lab, nf_call):
    """Also where the kernel's bridge runs prerouting by itself."""
    from test_g_lock import Port, in_gateway
    name = f"sp-{Path('/proc/self').resolve().name}"[:12] + "jb"
    run("ip", "-n", lab.gw, "link", "add", name, "type", "bridge", "stp_state", "0")
    box = None
    try:
        run("ip", "-n", lab.gw, "addr", "add", "10.219.0.1/24", "dev", name)
        run("ip", "-n", lab.gw, "addr", "add", "fd19::1/64", "dev", name, "nodad")
        run("ip", "-n", lab.gw, "link", "set", name, "up")
        in_gateway(lab, "sysctl", "-qw", *(f"net.bridge.bridge-nf-call-{t}={nf_call}"
                                           for t in ("iptables", "ip6tables", "arptables")))
        box = Port(lab, name, 1)
        box.number, box.popen = 9, lambda *cmd, **kw: subprocess.Popen(
            ["ip", "netns", "exec", box.ns, *map(str, cmd)], **kw)
        for address in (box.v4, box.v6):
            inside(lab, box, address, 8000)
            server = lab.procs[-1]
            box.register(ingress={}, addresses=[address])
            r = ask(lab, path(box, 8000), "POST", b"x" * 3000000)
            assert r.status == 200 and r.seen["bytes"] == 3000000, r.text
            server.terminate()
            server.wait()
    finally:
        lab.admin.call("DELETE", "/v1/sandboxes/sandbox-port-1")
        in_gateway(lab, "sysctl", "-qw", *(f"net.bridge.bridge-nf-call-{t}=0"
                                           for t in ("iptables", "ip6tables", "arptables")))
        if box:
            run("ip", "netns", "del", box.ns, check=False)
        run("ip", "-n", lab.gw, "link", "del", name, check=False)


def test_no_way_from_inside(lab):
    """A sandbox does not reach the ingress, and its packets pass for no answers."""
    one = lab.sandboxes[0]
    for address in (GATEWAY_O4, one.gw4):
        r = one.run("curl", "-sSk", "--max-time", "3", f"{'https' if lab.tls else 'http'}://{address}:{PORT}/status.ok")
        assert r.stdout != "OK", r


COUNT = """table inet look {
 chain in { type filter hook input priority 100; iifname "%s" tcp dport { 7777, 7778 } counter;
  iifname "%s" tcp sport 8000 counter; }
}"""

NODE = """
import socket, sys, time
own = []
for address, port in ((sys.argv[1], 7777), ("", 7778)):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port)); s.listen(8); own.append(s)
c = socket.create_connection((sys.argv[2], 8000))
print(c.getsockname()[1], flush=True)
time.sleep(60)
"""


def tracked(lab):
    """Entries of connection tracking about the sandbox's TCP."""
    return int(run("ip", "netns", "exec", lab.gw, "cat", "/proc/sys/net/netfilter/nf_conntrack_count").stdout)


def passed(lab):
    out = run("ip", "netns", "exec", lab.gw, "nft", "list", "table", "inet", "look").stdout
    return [int(x.split()[0]) for x in out.split("packets ")[1:]]


def test_packets_that_pose_as_answers(lab):
    """Whatever flags they carry and whoever listens on the node: what answers no connection
    that the node began is dropped before anybody has it, and leaves no entry behind."""
    import frames
    from test_g_lock import hardware
    one = lab.sandboxes[0]
    run("ip", "netns", "exec", lab.gw, "nft", "-f", "-", input=COUNT % (one.iface, one.iface))
    told = lab.tmp / f"node-{len(lab.procs)}"
    lab.procs.append(subprocess.Popen(["ip", "netns", "exec", lab.gw, "/usr/bin/python3", "-c", NODE, one.gw4,
                                       one.v4], stdout=open(told, "wb")))
    theirs = int(lab.wait(told.read_text, 5, "the node's sockets"))
    before, drops = tracked(lab), lab.admin.get("/v1/status")["gateway"]["drops"]["no_flow"]
    sent = []
    own, node = hardware(one.ns), hardware(lab.gw, one.iface)
    for flags in (0x10, 0x12, 0x18, 0x11, 0x04, 0x14, 0x00, 0x29, 0x1a):
        for to, port in ((one.gw4, 7777), (one.gw4, 7778), (GATEWAY_O4, 7778), (one.gw4, theirs)):
            for source in (8000, 41000) if port != theirs else (41000, 8001):
                segment = bytearray(frames.tcp_syn(one.v4, to, port, source))
                segment[13] = flags
                segment = frames.l4(one.v4, to, 6, bytes(segment[:16]) + b"\0\0" + bytes(segment[18:]), 16)
                sent.append(frames.ether(own, node, frames.IP4, frames.v4(one.v4, to, 6, segment)))
    one.run("/usr/bin/python3", "-c", SEND, *[f.hex() for f in sent], check=True)
    time.sleep(0.5)
    posed, real = passed(lab)
    assert posed == 0 and real > 0
    assert tracked(lab) <= before + 2  # DNS and the like of others
    assert lab.wait(lambda: lab.admin.get("/v1/status")["gateway"]["drops"]["no_flow"] - drops >= 20, 5, "the drops")
    # and the real one goes on
    assert ask(lab, path(one, 8000)).status == 200
    run("ip", "netns", "exec", lab.gw, "nft", "delete", "table", "inet", "look")


SEND = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("e0", 0))
for frame in sys.argv[1:]:
    for _ in range(2):
        s.send(bytes.fromhex(frame))
"""


def test_bad_hashes_are_refused(lab):
    status, reply = lab.admin.call("PUT", "/v1/sandboxes/sandbox-1", {
        "interface": lab.sandboxes[0].iface, "addresses": [lab.sandboxes[0].v4], "labels": {},
        "ingress": {"execdTokenSha256": "abc"}})
    assert status == 400 and "64 hex" in reply["message"]


def test_the_egress_api_is_controls(lab):
    """The port goes to control and never to the sandbox; the gateway survives what is asked."""
    before = lab.role_pid("gateway")
    for _ in range(3):
        r = ask(lab, path(lab.sandboxes[0], 18080, "/policy"), headers={"OPENSANDBOX-EGRESS-AUTH": "no"})
        assert r.status in (401, 404, 502) and "within" not in r.text
    assert lab.role_pid("gateway") == before


def shown(lab):
    """The serial number of the certificate that a client is shown."""
    s = connect(lab)
    number = s.getpeercert()["serialNumber"]
    s.close()
    return number


def test_another_certificate(lab):
    """Read again with the other files: what is under way goes on, what is wrong
    changes nothing."""
    if not lab.tls:
        pytest.skip("without TLS there is none")
    crt, key = lab.tmp / "ingress.pem", lab.tmp / "ingress.key"
    first, kept = shown(lab), connect(lab)
    old = crt.read_bytes(), key.read_bytes()
    crt.write_text("no certificate\n")
    lab.daemon.send_signal(signal.SIGHUP)
    lab.wait(lambda: "the former certificate of the ingress stays" in lab.log(), 10, "a refusal")
    assert shown(lab) == first
    crt.unlink()
    key.unlink()
    lab.daemon.send_signal(signal.SIGHUP)
    lab.wait(lambda: f"could not open {crt}" in lab.log(), 10, "another refusal")
    assert shown(lab) == first
    lab.leaf("ingress", GATEWAY_O4)
    lab.daemon.send_signal(signal.SIGHUP)
    second = lab.wait(lambda: (n := shown(lab)) != first and n, 10, "the other certificate")
    assert "the ingress has another certificate" in lab.log()
    # a connection from before is one of before
    assert kept.getpeercert()["serialNumber"] == first
    kept.sendall(b"GET /status.ok HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert kept.recv(4096).startswith(b"HTTP/1.1 200 ")
    # a gateway that is started anew has it too
    crt.write_bytes(old[0])
    key.write_bytes(old[1])
    lab.daemon.send_signal(signal.SIGHUP)
    lab.wait(lambda: shown(lab) == first, 10, "the first certificate")
    assert second != first
