# SPDX-License-Identifier: Apache-2.0
"""greeter.py LOG - servers that are neither TLS nor HTTP, at every address

Each connection adds one line of JSON to LOG when it ends: port, bytes and
SHA-256 of what was received, and how the client ended ("end", "reset",
"timeout").
"""
import hashlib
import json
import socket
import struct
import sys
import threading
import time

LOG, LOCK = open(sys.argv[1], "a", buffering=1), threading.Lock()
BULK = 64 << 20


def reset(c):
    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    c.close()


class Peer:
    """A connection that remembers what came."""

    def __init__(self, c):
        self.c, self.hash, self.n, self.end = c, hashlib.sha256(), 0, ""

    def say(self, data):
        self.c.sendall(data)

    def hear(self, size=65536):
        try:
            data = self.c.recv(size)
        except ConnectionResetError:
            data, self.end = b"", "reset"
        except TimeoutError:
            data, self.end = b"", "timeout"
        self.hash.update(data)
        self.n += len(data)
        if not data and not self.end:
            self.end = "end"
        return data

    def all(self):
        while self.hear(1 << 20):
            pass


def smtp(p):
    p.say(b"220 mail.b.test ESMTP\r\n")
    while line := p.hear():
        verb = line[:4].upper()
        if verb in (b"EHLO", b"HELO"):
            p.say(b"250-mail.b.test\r\n250 STARTTLS\r\n")
        elif verb == b"QUIT":
            p.say(b"221 bye\r\n")
            break
        else:
            p.say(b"250 ok\r\n")


def mysql(p):
    hello = b"\x0a8.0.36-lab\0" + struct.pack("<I", 7) + b"saltsalt\0" + b"\xff\xf7\x21\x02\0" + b"\0" * 13
    p.say(struct.pack("<I", len(hello))[:3] + b"\0" + hello)
    if p.hear():
        p.say(b"\x07\0\0\x02\0\0\0\x02\0\0\0")
    p.all()


def redis(p):
    while p.hear():
        p.say(b"+PONG\r\n")


def echo(p):
    while data := p.hear():
        p.say(data)


def late(p):
    time.sleep(0.5)
    p.say(b"late\n")
    p.all()


def daytime(p):
    p.say(b"noon\n")


def sum_at_end(p):
    p.all()
    p.say(f"{p.n} {p.hash.hexdigest()}\n".encode())


def half_closer(p):
    p.say(b"that was all\n")
    p.c.shutdown(socket.SHUT_WR)
    p.all()


def resetter(p):
    p.say(b"say the word\n")
    p.hear()
    reset(p.c)


def listener(p):
    p.say(b"hello\n")
    p.all()


def bulk(p):
    """As much in both directions at once; the line before says its hash."""
    piece = bytes(range(256)) * 4096
    data = (piece * (BULK // len(piece) + 1))[:BULK]
    p.say(hashlib.sha256(data).hexdigest().encode() + b"\n")
    writer = threading.Thread(target=lambda: (p.say(data), p.c.shutdown(socket.SHUT_WR)))
    writer.start()
    p.all()
    writer.join()


def after_upgrade(then):
    def upgrade(p):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += p.c.recv(1)
        p.say(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: raw\r\n\r\n")
        then(p)
    return upgrade


PORTS = {25: smtp, 587: smtp, 2525: smtp, 3306: mysql, 3307: mysql, 6379: redis, 7001: sum_at_end,
         7002: half_closer, 7003: bulk, 7004: resetter, 7005: listener, 7006: late, 7007: echo,
         7008: daytime, 8443: listener}
PORTS |= {7080: after_upgrade(sum_at_end), 7081: after_upgrade(half_closer), 7082: after_upgrade(resetter),
          7083: after_upgrade(listener)}


def serve(c, port):
    p = Peer(c)
    c.settimeout(60)
    try:
        PORTS[port](p)
    except OSError as e:
        p.end = p.end or type(e).__name__
    c.close()
    with LOCK:
        LOG.write(json.dumps({"port": port, "bytes": p.n, "sha256": p.hash.hexdigest(), "end": p.end}) + "\n")


def accept(s, port):
    while True:
        c, _ = s.accept()
        threading.Thread(target=serve, args=(c, port), daemon=True).start()


threading.stack_size(256 * 1024)
listeners = [(socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024), port)
             for port in PORTS]
print("ready", flush=True)
for pair in listeners:
    threading.Thread(target=accept, args=pair, daemon=True).start()
threading.Event().wait()
