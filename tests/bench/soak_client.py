# SPDX-License-Identifier: Apache-2.0
"""soak_client.py SEED THREADS - a sandbox that does everything, well and badly

Threads do one action after the other, chosen at random. Every action is one
line of JSON on stdout: its name, when it began and ended (monotonic), how many
exchanges it was, and what went wrong. Those of FAULTS break the rules or meet an
origin that does: whatever comes back is right, as long as it comes. stdin says
"pause" (answered by {"idle": true} when nothing is under way), "go" and "end".
"""
import base64
import gzip
import hashlib
import json
import os
import random
import select
import socket
import ssl
import struct
import sys
import threading
import time
import zlib

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions

API, PLAIN, TWO, PEER = ("api.lab.test", "plain.lab.test", "two.lab.test", "peer.lab.test")
MARK = b"sk-soak-"  # every credential of the soak begins so
BLOCK = bytes(range(256)) * 256
BIG = [0, 1, 16384, 262144, 4 << 20]  # files of the HTTP/2 origin
TIMEOUT = 45


class Wrong(Exception):
    """What the client did not cause."""


def want(condition, *what):
    if not condition:
        raise Wrong(" ".join(map(repr, what)))


def size(r):
    """Of all sizes, the small ones more often."""
    return r.choice([0, 1, 100, 4096, 16384, 65535, 65537, r.randrange(1 << 20),
                     r.randrange(4 << 20)])


def tls(host, alpn=("http/1.1",), verify=True):
    context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
    context.set_alpn_protocols(list(alpn))
    if not verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(tcp(host), server_hostname=host)


def tcp(host, port=443):
    sock = socket.create_connection((host, port), TIMEOUT)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def reset(sock):
    """Closes by RST."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    os.close(sock.detach())


# -- HTTP/1.1 ------------------------------------------------------------------

class One:
    """A connection of HTTP/1.1."""

    def __init__(self, sock, host):
        self.sock, self.host, self.file = sock, host, sock.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.sock.close()

    def send(self, method, path, body=None, chunked=False, **headers):
        head = f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\n"
        if chunked:
            head += "Transfer-Encoding: chunked\r\n"
        elif body is not None:
            head += f"Content-Length: {len(body)}\r\n"
        head += "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in headers.items())
        self.sock.sendall(head.encode() + b"\r\n")
        if chunked:
            for at in range(0, len(body), 60000):
                piece = body[at:at + 60000]
                self.sock.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.sock.sendall(b"0\r\nX-Sum: 1\r\n\r\n")
        elif body:
            self.sock.sendall(body)

    def head(self):
        """(status, [(name, value)]); EOFError when there is none."""
        first = self.file.readline()
        if not first:
            raise EOFError("no answer")
        status, headers = int(first.split()[1]), []
        while line := self.file.readline().strip():
            name, _, value = line.partition(b":")
            headers.append((name.lower().decode(), value.strip()))
            want(MARK not in line, "a credential in", line)
        return self.head() if status in (100, 103) else (status, headers)

    def exactly(self, n):
        data = self.file.read(n)
        if len(data) < n:
            raise EOFError(f"{len(data)} of {n} bytes")
        return data

    def body(self, method, status, headers):
        names = dict(headers)
        if method == "HEAD" or status in (204, 304):
            return b""
        if names.get("transfer-encoding") != b"chunked":
            return self.exactly(int(names["content-length"])) if "content-length" in names \
                else self.file.read()
        data = b""
        while n := int(self.file.readline().split(b";")[0], 16):
            data += self.exactly(n)
            want(self.exactly(2) == b"\r\n", "a chunk without end")
        while self.file.readline().strip():
            pass
        return data

    def ask(self, method, path, body=None, status=200, **more):
        self.send(method, path, body, **more)
        got, headers = self.head()
        data = self.body(method, got, headers)
        want(got == status, path, got, data[:200])
        return dict(headers), data


def injected(data, names="Authorization"):
    seen = json.loads(data)
    want(names in seen["headers"], "no credential was sent to", seen["path"])
    return seen


def upload(c, r, path="/up"):
    data = r.randbytes(size(r))
    seen = injected(c.ask("POST", path, data, chunked=r.random() < 0.5)[1])
    want(seen["sha256"] == hashlib.sha256(data).hexdigest(), "upload of", len(data), seen["length"])


def download(c, r):
    n = size(r)
    data = c.ask("GET", f"/big/{n}")[1]
    want(data == (BLOCK * (n // len(BLOCK) + 1))[:n], "download of", n, len(data))


def echo(c, r):
    form = r.choice(["raw", "base64", "shifted", "twice", "hex", "percent", "json", "slowly"])
    coding = "plain" if form == "slowly" else r.choice(["plain", "gzip", "gzip", "deflate"])
    headers, data = c.ask("GET", f"/echo/{form}/{coding}", Accept_Encoding="gzip, deflate")
    if headers.get("content-encoding") == b"gzip":
        data = gzip.decompress(data)
    elif "content-encoding" in headers:
        data = zlib.decompress(data)
    forms = [MARK, MARK.hex().encode(), b"".join(b"%%%02X" % c for c in MARK)]
    forms += [base64.b64encode(p + MARK)[4:-4] for p in (b"", b"x", b"xy")]
    want(not any(f in data for f in forms), "a credential in the body of", form, coding)
    want(data.startswith(b"before " * 1000) and data.endswith(b" after" * 1000), "body of", form)


def small(c, r):
    injected(c.ask("GET", f"/small?q={r.random()}")[1])


def headless(c, r):
    c.ask(*r.choice([("HEAD", "/x"), ("GET", "/204", None, 204), ("GET", "/304", None, 304),
                     ("GET", "/trailers"), ("GET", "/hints"), ("GET", "/401", None, 401)]))


def events(c, _):
    data = c.ask("GET", "/events")[1]
    want(data.count(b"data: ") == 5, "events", data)


def one_new(r):
    with One(tls(API), API) as c:
        r.choice([small, upload, download, echo, headless, events])(c, r)


def one_kept(r):
    n = r.randrange(2, 12)
    with One(tls(API), API) as c:
        for _ in range(n):
            r.choice([small, small, upload, download, echo, headless])(c, r)
    return n


def one_pipelined(r):
    n = r.randrange(2, 8)
    with One(tls(API), API) as c:
        for i in range(n):
            c.send("GET", f"/pipe/{i}")
        for i in range(n):
            status, headers = c.head()
            want(status == 200, "pipelined", status)
            want(json.loads(c.body("GET", status, headers))["path"] == f"/pipe/{i}", "order")
    return n


def one_plain(r):
    with One(tcp(PLAIN, 80), PLAIN) as c:
        data = r.randbytes(size(r))
        seen = json.loads(c.ask("POST", "/plain", data)[1])
        want(seen["sha256"] == hashlib.sha256(data).hexdigest(), "plain upload")
        c.ask("GET", f"/big/{size(r)}")
    return 2


def one_upgrade(r):
    with One(tls(API), API) as c:
        c.send("GET", "/upgrade", Connection="Upgrade", Upgrade="soak")
        want(c.head()[0] == 101, "no upgrade")
        for _ in range(r.randrange(1, 5)):
            data = r.randbytes(r.randrange(1, 60000))
            c.sock.sendall(data)
            want(c.exactly(len(data)) == data, "upgraded bytes")


def one_slow(r):
    """A reader with time."""
    with One(tls(API), API) as c:
        n = 3 << 20
        c.send("GET", f"/big/{n}")
        want(c.head()[0] == 200, "slow")
        while n:
            n -= len(c.exactly(min(n, 400000)))
            time.sleep(r.uniform(0, 0.5))


def refused(r):
    """What policy forbids: a request, and a name."""
    with One(tls("limited.lab.test"), "limited.lab.test") as c:
        c.ask("GET", "/ok/1")
        headers, _ = c.ask("GET", "/secret", status=403)
        want(headers.get("sallyport-denied") == b"policy", "a denial", headers)
    try:
        socket.getaddrinfo(f"no{r.randrange(1000)}.denied.test", 443)
    except socket.gaierror:
        return 2
    raise Wrong("a denied name resolves")


def spliced(r):
    """TLS that nobody opens: the origin's own certificate."""
    with One(tls("pinned.lab.test", verify=False), "pinned.lab.test") as c:
        for _ in range(r.randrange(1, 4)):
            n = size(r)
            want(c.ask("GET", f"/big/{n}")[1] == (BLOCK * (n // len(BLOCK) + 1))[:n], "spliced")


# -- HTTP/2 --------------------------------------------------------------------

class Two:
    """A connection of HTTP/2 that carries some exchanges at once."""

    def __init__(self, host):
        self.host, self.sock = host, tls(host, ("h2", "http/1.1"))
        want(self.sock.selected_alpn_protocol() == "h2", "no h2")
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration())
        self.h2.initiate_connection()
        self.asked, self.body, self.status, self.left, self.ended = {}, {}, {}, {}, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def ask(self, method, path, data=b""):
        stream = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream, [(":method", method), (":scheme", "https"),
                                      (":authority", self.host), (":path", path)],
                             end_stream=not data)
        self.asked[stream], self.body[stream], self.left[stream] = path, b"", data
        self.push(stream)
        return stream

    def push(self, stream):
        while data := self.left.get(stream):
            n = min(len(data), self.h2.local_flow_control_window(stream),
                    self.h2.max_outbound_frame_size)
            if n <= 0:
                return
            self.h2.send_data(stream, data[:n], end_stream=n == len(data))
            self.left[stream] = data[n:]
            self.sock.sendall(self.h2.data_to_send())

    def turn(self):
        """Sends what there is, reads once."""
        self.sock.sendall(self.h2.data_to_send())
        try:
            data = self.sock.recv(65536)
        except TimeoutError:
            raise Wrong("nothing came for", self.host, {
                path: (self.status.get(n), len(self.body[n])) for n, path in self.asked.items()
                if n not in self.ended}, list(self.asked.values())) from None
        if not data:
            raise EOFError("h2 connection closed")
        for e in self.h2.receive_data(data):
            stream = getattr(e, "stream_id", 0)
            if isinstance(e, h2.events.ResponseReceived):
                self.status[stream] = int(dict(e.headers)[b":status"])
                want(not any(MARK in v for _, v in e.headers), "a credential in", e.headers)
            elif isinstance(e, h2.events.DataReceived):
                self.body[stream] += e.data
                if stream not in self.ended:
                    self.h2.acknowledge_received_data(e.flow_controlled_length, stream)
            elif isinstance(e, h2.events.StreamEnded):
                self.ended[stream] = 0
            elif isinstance(e, h2.events.StreamReset):
                self.ended[stream] = e.error_code or "reset"
                self.left[stream] = b""
            elif isinstance(e, h2.events.ConnectionTerminated) and e.error_code:
                raise Wrong(f"GOAWAY {e.error_code} {e.additional_data}")
        for stream in list(self.left):
            self.push(stream)

    def all(self):
        while len(self.ended) < len(self.body):
            self.turn()
        self.sock.sendall(self.h2.data_to_send())


def two_many(r):
    asked = {}
    with Two(TWO) as c:
        for _ in range(r.randrange(1, 30)):
            kind = r.choice(["say", "say", "big", "echo", "up"])
            if kind == "say":
                path = f"/say/{r.randrange(1000)}"
                asked[c.ask("GET", path)] = path, f"said {path}\n".encode()
            elif kind == "big":
                n = r.choice(BIG)
                asked[c.ask("GET", f"/{n}")] = n, (BLOCK * 64)[:n]
            elif kind == "echo":
                asked[c.ask("GET", "/echo")] = kind, b"ok\n"
            else:
                data = r.randbytes(r.choice([1, 100, 65535, 65537, 500000]))
                asked[c.ask("POST", "/upload", data)] = (
                    kind, f"{len(data)} {hashlib.sha256(data).hexdigest()}".encode())
        c.all()
        for stream, (what, data) in asked.items():
            want(c.status.get(stream) == 200 and not c.ended[stream], what, c.status.get(stream),
                 c.ended[stream])
            want(c.body[stream] == data, what, len(c.body[stream]), c.body[stream][:80])
    return len(asked)


def two_bridged(r):
    """HTTP/1.1 here, HTTP/2 there."""
    with One(tls(TWO), TWO) as c:
        for _ in range(r.randrange(1, 6)):
            n = r.choice(BIG)
            want(c.ask("GET", f"/{n}")[1] == (BLOCK * 64)[:n], "bridged", n)


# -- what is not done ----------------------------------------------------------

HEADS = [
    b"GET / HTTP/9.9\r\n\r\n", b"\r\n\r\n\r\n\0\0", b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: api.lab.test\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    b"POST / HTTP/1.1\r\nHost: api.lab.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n"
    b"\r\n0\r\n\r\n", b"GET / HTTP/1.1\r\nHost: evil.lab.test\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: api.lab.test\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\nHost: api.lab.test\r\n\r\n",
    b"GET /a/%2e%2e/b HTTP/1.1\r\nHost: api.lab.test\r\n\r\n", b"CONNECT x:1 HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: api.lab.test\r\n X: folded\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: api.lab.test\r\n\r\n",
]


def drained(sock):
    """Reads what comes until it ends."""
    sock.settimeout(10)
    while sock.recv(65536):
        pass


def leave(sock, r):
    """Goes away in one of the ways there are."""
    if r.random() < 0.5:
        reset(sock)
    elif r.random() < 0.5:
        sock.close()
    else:
        sock.shutdown(socket.SHUT_WR)
        drained(sock)
        sock.close()


def bad_head(r):
    sock = tls(API) if r.random() < 0.7 else tcp(PLAIN, 80)
    with sock:
        sock.sendall(r.choice(HEADS))
        sock.shutdown(socket.SHUT_WR)
        drained(sock)


def bad_hello(r):
    with tcp(API) as sock:
        sock.sendall(r.choice([b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + r.randbytes(505),
                               b"\x16\x03\x01\xff\xff" + r.randbytes(100), r.randbytes(700),
                               b"\x16\x03\x01", b"\0", b"GET / HTTP/1.1\r\n", b"SSH-2.0-x\r\n"]))
        leave(sock, r)


def bad_dns(r):
    """Questions that are none, over both transports."""
    server = open("/etc/resolv.conf").read().split()[1]
    head = struct.pack(">HHHHHH", r.randrange(65536), 0x100, r.choice([0, 1, 2]), 0, 0, 0)
    data = head + r.choice([b"\xc0\x0c\0\1\0\1", b"\3api\3lab\4test\0\0\xff\0\1", b"\x3f", r.randbytes(40)])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(data, (server, 53))
    with tcp(server, 53) as sock:
        sock.sendall(struct.pack(">H", r.choice([len(data), 0, 65535])) + data)
        leave(sock, r)


def half_hello(r):
    """Breaks the handshake off, after the server's flight or before."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    side = context.wrap_bio(incoming, outgoing, server_hostname=API)
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        pass
    hello = outgoing.read()
    with tcp(API) as sock:
        sock.sendall(hello[:r.choice([10, len(hello) - 1, len(hello)])])
        if r.random() < 0.5 and select.select([sock], [], [], 0.5)[0]:
            sock.recv(100)
        leave(sock, r)


def half_request(r):
    sock = tls(API)
    head = b"POST /half HTTP/1.1\r\nHost: api.lab.test\r\nContent-Length: 100000\r\n\r\n"
    sock.sendall(head[:r.choice([4, 30, len(head) - 2, len(head)])])
    if r.random() < 0.5:
        sock.sendall(b"x" * r.randrange(1, 99999))
    time.sleep(r.choice([0, 0.05]))
    leave(sock, r)


def half_answer(r):
    sock = tls(r.choice([API, PLAIN]), verify=False)
    host = sock.server_hostname
    sock.sendall(f"GET /big/{8 << 20} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    for _ in range(r.randrange(5)):
        sock.recv(65536)
    leave(sock, r)


def half_splice(r):
    sock = tls("pinned.lab.test", verify=False)
    sock.sendall(b"GET /big/8000000 HTTP/1.1\r\nHost: pinned.lab.test\r\n\r\n")
    sock.recv(65536)
    leave(sock, r)


def half_upgrade(r):
    with One(tls(API), API) as c:
        c.send("GET", "/upgrade", Connection="Upgrade", Upgrade="soak")
        c.head()
        c.sock.sendall(r.randbytes(100000))
        reset(c.sock)


def origin_breaks(r):
    with One(tls(API), API) as c:
        c.send("GET", r.choice(["/broken", "/nothing", "/bad-head", "/twice", "/close", "/early"]))
        c.body("GET", *c.head())


def early(r):
    with One(tls(API), API) as c:
        c.send("POST", "/early", r.randbytes(200000))
        c.body("POST", *c.head())


def origin_breaks_two(r):
    with Two(PEER) as c:
        for _ in range(r.randrange(1, 6)):
            c.ask("GET", r.choice(["/reset/2", "/reset/1", f"/once/{r.random()}", "/half", "/cut",
                                   "/drop", f"/goaway/{r.random()}", "/trailers", "/interim",
                                   "/big/300000", "/bighead/20", "/bye", "/drip/3"]))
        c.all()


def two_resets(r):
    with Two(TWO) as c:
        streams = [c.ask("GET", f"/{r.choice(BIG)}") for _ in range(r.randrange(1, 20))]
        c.ask("POST", "/upload", b"x" * 300000)
        for _ in range(r.randrange(3)):
            c.turn()
        for stream in streams:
            if stream not in c.ended:
                c.h2.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)
                c.ended[stream] = 0
        c.turn()
        if r.random() < 0.5:
            c.ask("GET", "/say/after")
            c.all()
        c.sock = c.sock if r.random() < 0.5 else reset(c.sock) or socket.socket()


def two_stalls(r):
    """Windows that never open, then gone."""
    with Two(TWO) as c:
        for _ in range(4):
            c.ask("GET", f"/{4 << 20}")
        c.sock.sendall(c.h2.data_to_send())
        time.sleep(r.uniform(0, 1))
        leave(c.sock, r)


def two_broken(r):
    """Frames that are none, or not now."""
    sock = tls(TWO, ("h2",))
    with sock:
        sock.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0" + r.choice([
            b"\0\0\1\0\0\0\0\0\1x", b"\xff\xff\xff\0\0\0\0\0\1", b"\0\0\4\1\5\0\0\0\1" + b"\xff" * 4,
            b"\0\0\4\x08\0\0\0\0\0\0\0\0\0", b"\0\0\3\6\0\0\0\0\0abc", r.randbytes(200),
            b"\0\0\5\1\4\0\0\0\1" + b"\x82\x87"]))
        leave(sock, r)


def sometimes(r):
    """A host that policy allows now and then."""
    with One(tls("other.lab.test"), "other.lab.test") as c:
        for _ in range(5):
            c.ask("GET", "/sometimes")
            time.sleep(r.random() / 5)


CLEAN = [one_new, one_new, one_kept, one_kept, one_pipelined, one_plain, one_upgrade, one_slow,
         refused, spliced, two_many, two_many, two_bridged]
FAULTS = [bad_head, bad_hello, bad_dns, half_hello, half_request, half_answer, half_splice, half_upgrade,
          origin_breaks, early, origin_breaks_two, two_resets, two_stalls, two_broken, sometimes]


# -- threads -------------------------------------------------------------------

class Client:
    def __init__(self, seed, threads):
        self.lock, self.changed = threading.Lock(), threading.Condition()
        self.busy, self.wish = 0, "go"
        for i in range(threads):
            threading.Thread(target=self.work, args=(random.Random(f"{seed}/{i}"),),
                             daemon=True).start()

    def say(self, **record):
        with self.lock:
            print(json.dumps(record), flush=True)

    def work(self, r):
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.wish == "go")
                self.busy += 1
            self.act(r)
            with self.changed:
                self.busy -= 1
                self.changed.notify_all()

    def act(self, r):
        fault = r.random() < 0.4
        action = r.choice(FAULTS if fault else CLEAN)
        start, error, count = time.monotonic(), None, 1
        try:
            count = action(r) or 1
        except Wrong as e:  # even of one that misbehaves
            error = None if action is sometimes else f"{e}"
        except (TimeoutError, socket.timeout) as e:
            error = f"{e!r}"
        except (OSError, EOFError, ValueError, KeyError, IndexError,
                h2.exceptions.ProtocolError) as e:
            error = None if fault else f"{e!r}"
        self.say(action=action.__name__, fault=fault, start=start, end=time.monotonic(),
                 count=count, error=error)

    def command(self, word):
        with self.changed:
            self.wish = word
            self.changed.notify_all()
            if word != "go":
                self.changed.wait_for(lambda: not self.busy)
        if word != "go":
            self.say(idle=True)


if __name__ == "__main__":
    client = Client(sys.argv[1], int(sys.argv[2]))
    for line in sys.stdin:
        client.command(line.strip())
        if line.strip() == "end":
            break
