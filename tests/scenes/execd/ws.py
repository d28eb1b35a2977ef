# SPDX-License-Identifier: Apache-2.0
"""ws.py - a WebSocket client that sees every frame, and terminals over it

    ws = WebSocket(port, "/pty/ID/ws")        opens, or .status says why not
    pty = Terminal(daemon, command=...)       POST /pty and its clients
"""
import base64
import hashlib
import json
import os
import socket
import struct
import time

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Closed(Exception):
    def __init__(self, code, reason=""):
        super().__init__(f"closed with {code}: {reason}")
        self.code, self.reason = code, reason


class WebSocket:
    def __init__(self, port, path, token=None, headers=None, rcvbuf=None, timeout=20,
                 answer_pings=True, version="13"):
        self.sock = socket.socket()
        if rcvbuf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.sock.settimeout(timeout)
        self.sock.connect(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.held, self.answer_pings, self.pings = b"", answer_pings, 0
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Upgrade: websocket",
                 "Connection: keep-alive, Upgrade", f"Sec-WebSocket-Key: {key}",
                 f"Sec-WebSocket-Version: {version}"]
        if token:
            lines.append(f"X-EXECD-ACCESS-TOKEN: {token}")
        lines += [f"{k}: {v}" for k, v in (headers or {}).items()]
        self.sock.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
        while b"\r\n\r\n" not in self.held:
            self.more()
        head, self.held = self.held.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split(" ")[1])
        self.headers = {k.lower(): v.strip() for k, v in
                        (line.split(":", 1) for line in lines[1:])}
        if self.status == 101:
            want = base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()
            assert self.headers["sec-websocket-accept"] == want
            self.error = None
        else:
            length = int(self.headers.get("content-length", 0))
            while len(self.held) < length:
                self.more()
            self.error = json.loads(self.held[:length])

    def more(self):
        got = self.sock.recv(1 << 18)
        if not got:
            raise Closed(1006, "the connection ended")
        self.held += got

    def exactly(self, count):
        while len(self.held) < count:
            self.more()
        found, self.held = self.held[:count], self.held[count:]
        return found

    # -- sending ------------------------------------------------------------

    def frame(self, opcode, data, fin=True, masked=True):
        head = bytes([(0x80 if fin else 0) | opcode])
        bit = 0x80 if masked else 0
        if len(data) < 126:
            head += bytes([bit | len(data)])
        elif len(data) < 65536:
            head += struct.pack(">BH", bit | 126, len(data))
        else:
            head += struct.pack(">BQ", bit | 127, len(data))
        if not masked:
            return head + data
        mask = os.urandom(4)
        key = int.from_bytes((mask * (len(data) // 4 + 1))[:len(data)], "big")
        turned = (int.from_bytes(data, "big") ^ key).to_bytes(len(data), "big")
        return head + mask + turned

    def send(self, opcode, data, **kw):
        self.sock.sendall(self.frame(opcode, data, **kw))

    def ask(self, kind, **more):
        self.send(TEXT, json.dumps({"type": kind, **more}).encode())

    def type(self, data):
        self.send(BINARY, b"\0" + (data if isinstance(data, bytes) else data.encode()))

    # -- receiving ----------------------------------------------------------

    def receive(self):
        """The next message: (opcode, bytes); raises Closed."""
        whole = b""
        while True:
            first, second = self.exactly(2)
            opcode, length = first & 15, second & 127
            assert not first & 0x70 and not second & 0x80, "a server masks nothing"
            if length == 126:
                length, = struct.unpack(">H", self.exactly(2))
            elif length == 127:
                length, = struct.unpack(">Q", self.exactly(8))
            data = self.exactly(length)
            if opcode == PING:
                self.pings += 1
                if self.answer_pings:
                    self.send(PONG, data)
            elif opcode == CLOSE:
                raise Closed(int.from_bytes(data[:2], "big") if data else 1005,
                             data[2:].decode())
            elif opcode == PONG:
                continue
            else:
                whole += data
                if first & 0x80:
                    return opcode, whole

    def close(self):
        self.sock.close()


class Client(WebSocket):
    """Of a terminal: sorts what comes."""

    def __init__(self, *args, **kw):
        super().__init__(*args, **kw)
        self.out, self.err, self.texts = bytearray(), bytearray(), []
        self.replays = []  # (offset, bytes)
        self.order = []

    def step(self):
        """One message; its kind."""
        opcode, data = self.receive()
        if opcode == TEXT:
            self.texts.append(json.loads(data))
            kind = self.texts[-1]["type"]
        else:
            kind = {1: "stdout", 2: "stderr", 3: "replay"}[data[0]]
            if kind == "stdout":
                self.out += data[1:]
            elif kind == "stderr":
                self.err += data[1:]
            else:
                self.replays.append((struct.unpack(">Q", data[1:9])[0], data[9:]))
        self.order.append(kind)
        return kind

    def until(self, kind):
        """The text of this type."""
        while True:
            for i, text in enumerate(self.texts):
                if text["type"] == kind:
                    return self.texts.pop(i)
            self.step()

    def until_out(self, what, seconds=20):
        """stdout up to and with `what`; the rest is kept."""
        what = what if isinstance(what, bytes) else what.encode()
        end, seen = time.monotonic() + seconds, 0
        while True:
            at = self.out.find(what, max(0, seen - len(what)))
            if at >= 0:
                break
            seen = len(self.out)
            assert time.monotonic() < end, f"no {what!r} in {self.out[-2000:]!r}"
            self.step()
        found = bytes(self.out[:at + len(what)])
        del self.out[:len(found)]
        return found

    def until_closed(self):
        try:
            while True:
                self.step()
        except Closed as e:
            return e

    def run(self, line, mark="@@"):
        """What a command prints in an interactive shell without echo."""
        self.type(f"{line}; echo {mark[0]}''{mark[1:]}\n")
        found = self.until_out(mark)[:-len(mark)]
        self.until_out(b"\n")
        return found


class Terminal:
    def __init__(self, daemon, **body):
        self.daemon = daemon
        reply = daemon.request("POST", "/pty", body or None)
        assert reply.status == 201, reply
        self.id = reply.json()["session_id"]

    def open(self, query="", **kw):
        """A client, connected: or one whose .status is not 101."""
        client = Client(self.daemon.port, f"/pty/{self.id}/ws{query}", **kw)
        if client.status == 101:
            client.connected = client.until("connected")
        return client

    def state(self):
        return self.daemon.request("GET", f"/pty/{self.id}").json()

    def delete(self):
        return self.daemon.request("DELETE", f"/pty/{self.id}")
