# SPDX-License-Identifier: Apache-2.0
"""A WebSocket through the ingress, to where the official Python SDK says: the SDK
itself has none, so the frames are ours (RFC 6455)."""
import json
import socket
import struct
import urllib.request

import pytest


class WebSocket:
    def __init__(self, endpoint, path, headers):
        at, _, prefix = endpoint.partition("/")
        host, port = at.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), 20)
        lines = [f"GET /{prefix}{path} HTTP/1.1", f"Host: {at}", "Connection: keep-alive, Upgrade",
                 "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                 "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
                 *(f"{k}: {v}" for k, v in headers.items())]
        self.socket.sendall("".join(f"{line}\r\n" for line in lines + [""]).encode())
        self.file = self.socket.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        while self.file.readline().strip():
            pass

    def send(self, data):
        self.socket.sendall(bytes([0x81, 0x80 | len(data), 0, 0, 0, 0]) + data)

    def frames(self):
        """Opcode and data of each, up to and with a close."""
        opcode = 0
        while opcode != 8 and (head := self.file.read(2)):
            opcode, size = head[0] & 15, head[1]
            if size == 126:
                size, = struct.unpack(">H", self.file.read(2))
            elif size == 127:
                size, = struct.unpack(">Q", self.file.read(8))
            yield opcode, self.file.read(size)

    def close(self):
        self.file.close()
        self.socket.close()


@pytest.mark.parametrize("proxied", [False, True])
def test_a_terminal(make, config, proxied):
    sandbox = make()
    if proxied:
        config = config.model_copy(update={"use_server_proxy": True})
        sandbox = type(sandbox).connect(sandbox.id, connection_config=config)
    at = sandbox.get_endpoint(44772)
    with urllib.request.urlopen(urllib.request.Request(
            f"http://{at.endpoint}/pty", data=b"{}", method="POST",
            headers={**at.headers, "Content-Type": "application/json"}), timeout=20) as reply:
        path = f"/pty/{json.load(reply)['session_id']}/ws"
    stranger = WebSocket(at.endpoint, path, {})
    assert stranger.status == 401
    stranger.close()

    terminal = WebSocket(at.endpoint, path, at.headers)
    assert terminal.status == 101
    terminal.send(json.dumps({"type": "stdin", "data": "echo $((6*7))@pty; exit\n"}).encode())
    frames = list(terminal.frames())
    terminal.close()
    assert b"42@pty" in b"".join(data for opcode, data in frames if opcode == 2)
    opcode, data = frames[-1]
    assert opcode == 8 and data[:2] == struct.pack(">H", 1000)
