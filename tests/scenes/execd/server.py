# SPDX-License-Identifier: Apache-2.0
"""server.py - servers on the loopback for the proxy to reach

    with Server(answer) as s: ...       answer(request, sock) in a thread each
"""
import socket
import threading


class Request:
    def __init__(self, head, body, peer):
        lines = head.decode("latin-1").split("\r\n")
        self.line, self.raw = lines[0], head
        self.method, self.target, _ = lines[0].split(" ", 2)
        self.fields = [tuple(p.strip() for p in line.split(":", 1)) for line in lines[1:]]
        self.body, self.peer = body, peer

    def all(self, name):
        return [v for k, v in self.fields if k.lower() == name.lower()]

    def get(self, name):
        found = self.all(name)
        return found[0] if found else None


class Reader:
    def __init__(self, sock):
        self.sock, self.held = sock, b""

    def more(self):
        got = self.sock.recv(1 << 18)
        if not got:
            raise EOFError
        self.held += got

    def until(self, end):
        while end not in self.held:
            self.more()
        found, self.held = self.held.split(end, 1)
        return found

    def exactly(self, count):
        parts = []
        while count:
            if not self.held:
                self.more()
            parts.append(self.held[:count])
            self.held = self.held[count:]
            count -= len(parts[-1])
        return b"".join(parts)

    def body(self, request):
        if (request.get("Transfer-Encoding") or "") == "chunked":
            parts = []
            while True:
                part = self.exactly(int(self.until(b"\r\n"), 16))
                assert self.exactly(2) == b"\r\n"
                if not part:
                    return b"".join(parts)
                parts.append(part)
        return self.exactly(int(request.get("Content-Length") or 0))


class Server:
    """Calls answer(request, sock, reader) for each request; what it returns that
    is not None ends the connection. whole=False: the body is the answer's."""

    def __init__(self, answer, host="127.0.0.1", whole=True):
        self.answer, self.whole = answer, whole
        self.sock = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host
                                         else socket.AF_INET)
        self.port = self.sock.getsockname()[1]
        self.requests, self.connections, self.errors = [], [], []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                sock, peer = self.sock.accept()
            except OSError:
                return
            sock.settimeout(30)
            self.connections.append(sock)
            threading.Thread(target=self.serve, args=(sock, peer), daemon=True).start()

    def serve(self, sock, peer):
        reader = Reader(sock)
        try:
            while True:
                request = Request(reader.until(b"\r\n\r\n"), b"", peer)
                if self.whole:
                    request.body = reader.body(request)
                self.requests.append(request)
                if self.answer(request, sock, reader) is not None:
                    break
        except (EOFError, OSError) as e:
            self.errors.append(e)
        sock.close()

    def close(self):
        for sock in (self.sock, *self.connections):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
