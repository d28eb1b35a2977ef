# SPDX-License-Identifier: Apache-2.0
"""h2_peer.py ADDRESS CRT KEY FOLDER - an origin of HTTP/2 that does as it is asked

What it offers in ALPN stands in FOLDER/alpn and is read for every connection,
with "tunnels" RFC 8441 as well; over HTTP/1.1 it answers too. Paths say what to do, FOLDER/log what it saw.
"""
import gzip
import json
import socket
import ssl
import sys
import threading
import time
from pathlib import Path

import brotli
import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings
import hpack
import zstandard

ADDRESS, CRT, KEY, FOLDER = sys.argv[1:5]
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONT = range(10)
FLOOD_BYTES, FLOOD_S = 64 << 20, 8
lock = threading.Lock()
told = set()


def note(record):
    with lock, open(Path(FOLDER) / "log", "a") as log:
        log.write(json.dumps(record) + "\n")


def frame(kind, flags=0, stream=0, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def literal(name, value):
    """A field that enters no table."""
    return b"\x10" + bytes([len(name)]) + name + bytes([len(value)]) + value


STATUS, HINTS = literal(b":status", b"200"), literal(b":status", b"103")
# what an origin may send without end: before it and over and over
FLOODS = {
    "ping": (b"", lambda s: frame(PING, 0, 0, b"12345678")),
    "settings": (b"", lambda s: frame(SETTINGS, 0, 0, b"\0\4\0\0\xff\xff")),
    "acks": (b"", lambda s: frame(SETTINGS, 1)),
    "unknown": (b"", lambda s: frame(0x42, 0, 0, b"x")),
    "window": (b"", lambda s: frame(WINDOW, 0, s, b"\0\0\0\1")),
    "reset": (b"", lambda s: frame(RST, 0, s, b"\0\0\0\x08")),
    "goaway": (b"", lambda s: frame(GOAWAY, 0, 0, b"\x7f\xff\xff\xff\0\0\0\0")),
    "empty": (STATUS, lambda s: frame(DATA, 0, s)),
    "padding": (STATUS, lambda s: frame(DATA, 8, s, b"\x10" + bytes(16))),
    "tiny": (STATUS, lambda s: frame(DATA, 0, s, b"x")),
    "interim": (b"", lambda s: frame(HEADERS, 4, s, HINTS + literal(b"link", b"v" * 100))),
    "continuation": (None, lambda s: frame(CONT, 0, s, literal(b"a", b"v" * 100))),
    "nothing": (None, lambda s: frame(CONT, 0, s)),
    "bomb": (None, lambda s: frame(CONT, 0, s, b"\xbe" * 12000)),
    "trailers": (STATUS, lambda s: frame(HEADERS, 4, s, literal(b"x", b"y"))),
    "push": (b"", lambda s: frame(PUSH, 4, s, b"\0\0\0\2" + STATUS)),
}


class Over(Exception):
    pass


class Two:
    """One connection of HTTP/2."""

    def __init__(self, sock, number):
        self.sock, self.number, self.streams, self.due = sock, number, {}, []
        self.queue, self.tunnels = {}, set()
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(
            client_side=False, header_encoding="utf-8", validate_outbound_headers=False,
            normalize_outbound_headers=False))

    def run(self, tunnels):
        if tunnels:
            self.h2.local_settings = h2.settings.Settings(client=False, initial_values={
                h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL: 1})
        self.h2.initiate_connection()
        self.flush()
        self.sock.settimeout(0.02)
        while True:
            try:
                data = self.sock.recv(65536)
                if not data:
                    return
                for event in self.h2.receive_data(data):
                    self.on(event)
            except (TimeoutError, ssl.SSLWantReadError):
                pass
            now = time.monotonic()
            for act in [a for a in self.due if a[0] <= now]:
                self.due.remove(act)
                act[1]()
            for stream in list(self.queue):
                self.send(stream)
            self.flush()

    def flush(self):
        data = self.h2.data_to_send()
        if data:
            self.sock.settimeout(20)
            self.sock.sendall(data)
            self.sock.settimeout(0.02)

    def on(self, event):
        if isinstance(event, h2.events.RequestReceived):
            self.streams[event.stream_id] = {
                "version": 2, "conn": self.number, "stream": event.stream_id,
                "headers": event.headers, "path": dict(event.headers)[":path"],
                "method": dict(event.headers)[":method"], "length": 0, "trailers": []}
            if dict(event.headers)[":path"] == "/unread":  # its window stays shut
                note(self.streams.pop(event.stream_id))
            elif dict(event.headers)[":method"] == "CONNECT":
                self.connect(event.stream_id, self.streams.pop(event.stream_id))
        elif event and getattr(event, "stream_id", None) in self.tunnels:
            self.tunnel(event)
        elif isinstance(event, h2.events.DataReceived):
            if event.stream_id in self.streams:
                self.streams[event.stream_id]["length"] += len(event.data)
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.TrailersReceived):
            if event.stream_id in self.streams:
                self.streams[event.stream_id]["trailers"] = event.headers
        elif isinstance(event, h2.events.StreamEnded):
            if event.stream_id in self.streams:
                self.answer(event.stream_id, self.streams.pop(event.stream_id))
        elif isinstance(event, h2.events.StreamReset):
            self.streams.pop(event.stream_id, None)
            self.queue.pop(event.stream_id, None)
            note({"reset": int(event.error_code), "stream": event.stream_id, "conn": self.number})
        elif isinstance(event, h2.events.PingReceived):
            note({"ping": True, "conn": self.number})
        elif isinstance(event, h2.events.ConnectionTerminated):
            note({"goaway": int(event.error_code), "conn": self.number})

    def say(self, stream, status, body, headers=(), end=True):
        self.h2.send_headers(stream, [(":status", str(status))] + list(headers))
        self.queue[stream] = [body, end]
        self.send(stream)

    def send(self, stream):
        entry = self.queue.get(stream)
        if not entry:
            return
        body, end = entry
        while body:
            n = min(len(body), self.h2.local_flow_control_window(stream),
                    self.h2.max_outbound_frame_size)
            if n <= 0:
                break
            self.h2.send_data(stream, body[:n])
            body = body[n:]
        entry[0] = body
        if body:
            return
        del self.queue[stream]
        if callable(end):
            end()
        elif end:
            self.h2.end_stream(stream)

    def connect(self, stream, seen):
        note(seen)
        if not seen["path"].startswith("/switch"):
            self.say(stream, 403, b"no tunnel\n")
            return
        self.tunnels.add(stream)
        self.h2.send_headers(stream, [(":status", "200"), ("sec-websocket-protocol", "lab")])

    def tunnel(self, event):
        """Echoes; what is "torn" ends in the middle."""
        if isinstance(event, h2.events.DataReceived):
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            if event.data == b"torn":
                self.tunnels.discard(event.stream_id)
                self.h2.reset_stream(event.stream_id, 8)
            else:
                self.h2.send_data(event.stream_id, event.data)
        elif isinstance(event, h2.events.StreamEnded):
            self.h2.end_stream(event.stream_id)
        elif isinstance(event, h2.events.StreamReset):
            self.tunnels.discard(event.stream_id)
            note({"reset": int(event.error_code), "stream": event.stream_id, "conn": self.number})

    def later(self, seconds, act):
        self.due.append((time.monotonic() + seconds, act))

    def flood(self, stream, kind):
        first, again = FLOODS[kind]
        self.flush()
        self.sock.settimeout(FLOOD_S)
        if first is None:  # a head without end; its first entry goes into the table
            big = b"\x40\x01a\x7f\x81\x1e" + b"v" * 4000
            self.sock.sendall(frame(HEADERS, 0, stream, STATUS + big))
        elif first:
            self.sock.sendall(frame(HEADERS, 4, stream, first))
        piece, sent = again(stream), 0
        piece *= max(1, 16384 // len(piece))
        try:
            while sent < FLOOD_BYTES:
                self.sock.sendall(piece)
                sent += len(piece)
        finally:
            note({"flood": kind, "sent": sent, "conn": self.number})

    def close(self):
        self.flush()
        raise Over

    def goaway(self, stream):
        """All up to the one before the stream were served."""
        self.h2.close_connection(error_code=0, last_stream_id=max(0, stream - 2))
        self.flush()
        self.later(0.2, self.close)

    def answer(self, stream, seen):
        note(seen)
        _, verb, *rest = seen["path"].split("/")
        if seen["method"] == "HEAD" and verb != "bare":
            self.h2.send_headers(stream, [(":status", "200"), ("content-length", "3")],
                                 end_stream=True)
            return
        if verb == "bare":  # its end is a frame of its own
            self.say(stream, int(rest[0]), b"")
        elif verb == "big":
            self.say(stream, 200, b"x" * int(rest[0]))
        elif verb == "reset":
            self.h2.reset_stream(stream, int(rest[0]))
        elif verb == "once":  # refused the first time, and untouched
            if seen["path"] in told:
                self.say(stream, 200, b"at last\n")
            else:
                told.add(seen["path"])
                self.h2.reset_stream(stream, h2.errors.ErrorCodes.REFUSED_STREAM)
        elif verb == "half":
            self.say(stream, 200, b"half of it", [("content-length", "20")],
                     lambda: self.h2.reset_stream(stream, 2))
        elif verb == "torn":  # the same with a code of choice
            self.say(stream, 200, b"half of it", [("content-length", "20")],
                     lambda: self.h2.reset_stream(stream, int(rest[0])))
        elif verb == "cut":
            self.say(stream, 200, b"half of it", end=False)
            self.later(0.1, self.close)
        elif verb == "drop":
            self.close()
        elif verb == "goaway":
            if seen["path"] in told:
                self.say(stream, 200, b"again\n")
            else:
                told.add(seen["path"])
                self.goaway(stream)
        elif verb == "slow":
            self.later(float(rest[0]), lambda: self.say(stream, 200, b"slow\n"))
        elif verb == "hang":
            pass
        elif verb == "drip":  # something every 0.1 s
            self.say(stream, 200, b"first\n", end=False)
            self.drip(stream, int(rest[0]))
        elif verb == "coded":  # many lines of a beginning of the credential, and of all of it
            secret = dict(seen["headers"])["authorization"].split(" ")[1].encode()
            pack = {"plain": bytes, "gzip": gzip.compress, "br": lambda d: brotli.compress(d, quality=1),
                    "zstd": zstandard.ZstdCompressor().compress}[rest[0]]
            text = b"".join(b"%d %s\n" % (i, secret[:i % (len(secret) + 1)]) for i in range(int(rest[1])))
            self.say(stream, 200, pack(text),
                     [] if rest[0] == "plain" else [("content-encoding", rest[0])])
        elif verb == "mirror":  # the credential in a head and in trailers
            echo = [hpack.NeverIndexedHeaderTuple("x-echo", dict(seen["headers"]).get("authorization", ""))]
            self.say(stream, 200, b"mirror\n", echo,
                     lambda: self.h2.send_headers(stream, echo, end_stream=True))
        elif verb == "interim":
            for link in ("</a>; rel=preload", "</b>; rel=preload"):
                self.h2.send_headers(stream, [(":status", "103"), ("link", link)])
            self.say(stream, 200, b"final\n")
        elif verb == "trailers":
            self.say(stream, 200, b"body\n", [("trailer", "x-sum")], lambda: self.h2.send_headers(
                stream, [("x-sum", "42"), ("x-more", "7")], end_stream=True))
        elif verb == "bighead":
            self.say(stream, 200, b"ok\n", [(f"x-{i}", "v" * 1000) for i in range(int(rest[0]))])
        elif verb == "flood":
            self.flood(stream, rest[0])
        elif verb == "bye":
            self.say(stream, 200, b"bye\n")
            self.later(0.1, self.close)
        else:
            self.say(stream, 200, json.dumps(seen).encode())

    def drip(self, stream, left):
        if not left:
            self.h2.end_stream(stream)
            return
        self.h2.send_data(stream, b"drop\n")
        self.later(0.1, lambda: self.drip(stream, left - 1))


def lines_of(file):
    while True:
        line = file.readline().rstrip(b"\r\n").decode()
        if not line:
            return
        name, value = line.split(":", 1)
        yield name.lower(), value.strip()


def one(sock, number):
    """The same in HTTP/1.1, as far as it goes."""
    file = sock.makefile("rb")
    while True:
        first = file.readline().split()
        if not first:
            return
        seen = {"version": 1, "conn": number, "method": first[0].decode(), "path": first[1].decode(),
                "headers": list(lines_of(file)), "length": 0, "trailers": []}
        names = dict(seen["headers"])
        if names.get("expect") == "100-continue":
            sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if names.get("transfer-encoding") == "chunked":
            while size := int(file.readline().split(b";")[0], 16):
                seen["length"] += len(file.read(size))
                file.readline()
            seen["trailers"] = list(lines_of(file))
        else:
            seen["length"] = len(file.read(int(names.get("content-length", 0))))
        note(seen)
        verb = seen["path"].split("/")[1]
        if verb == "trailers":
            sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
                         b"5\r\nbody\n\r\n0\r\nX-Sum: 42\r\nX-More: 7\r\n\r\n")
        elif verb == "interim":
            sock.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"
                         b"HTTP/1.1 103 Early Hints\r\nLink: </b>; rel=preload\r\n\r\n"
                         b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nfinal\n")
        elif verb == "switch":
            sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                         b"Upgrade: %s\r\n\r\n" % names["upgrade"].encode())
            while data := file.read1(65536):
                sock.sendall(data)
            return
        elif verb == "cut":
            sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhalf \r\n")
            return
        else:
            body = json.dumps(seen).encode()
            sock.sendall(b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\n"
                         b"Content-Length: %d\r\n\r\n" % len(body) + body)


def refuse(sock, name, context):
    """RFC 7301 wants no_application_protocol; Python would shake hands all the same."""
    return 120


def serve(sock, number):
    note({"accepted": number, "port": str(sock.getpeername()[1])})
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CRT, KEY)
    offers = (Path(FOLDER) / "alpn").read_text().split()
    context.set_alpn_protocols([name for name in offers if name != "tunnels"])
    try:
        hello = sock.recv(16384, socket.MSG_PEEK)
        if b"\x02h2" not in hello and "http/1.1" not in (Path(FOLDER) / "alpn").read_text():
            context.sni_callback = refuse
        sock = context.wrap_socket(sock, server_side=True)
        if sock.selected_alpn_protocol() == "h2":
            Two(sock, number).run("tunnels" in offers)
        elif sock.selected_alpn_protocol() or "http/1.1" in (Path(FOLDER) / "alpn").read_text():
            one(sock, number)
    except (OSError, Over, h2.exceptions.ProtocolError, ValueError) as e:
        note({"ended": repr(e), "conn": number})
    finally:
        sock.close()


listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((ADDRESS, 443))
listener.listen(512)
print("ready", flush=True)
count = 0
while True:
    conn, _ = listener.accept()
    conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    count += 1
    threading.Thread(target=serve, args=(conn, count), daemon=True).start()
