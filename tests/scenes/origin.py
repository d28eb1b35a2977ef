# SPDX-License-Identifier: Apache-2.0
"""origin.py FILE ADDRESS[/ADDRESS...] - an origin that says what it received

FILE is JSON {"certs": {"name": [crt, key], ..., "": [crt, key]}, "log": path}.
Serves TLS on 443 (certificate by SNI) and plain HTTP on 80. Every request is
appended to the log as one JSON line; the path chooses the answer.
"""
import base64
import gzip
import hashlib
import json
import socket
import ssl
import sys
import threading
import time
import urllib.parse
import zlib

import brotli
import zstandard

CONFIG = json.load(open(sys.argv[1]))
LOCK = threading.Lock()


LOGIN = base64.b64encode(b"lab:login-of-the-registry").decode()
REALM = 'Bearer realm="https://deep.sub.lab.test/token",service="registry",scope="repository:a:pull"'
FORMS = {
    "raw": lambda s: s,
    "slowly": lambda s: s,
    "base64": base64.b64encode,
    "shifted": lambda s: base64.b64encode(b"x" + s + b"yz"),
    "twice": lambda s: base64.b64encode(b"xy" + s),
    "hex": lambda s: s.hex().encode(),
    "percent": lambda s: "".join("%%%02X" % c for c in s).encode(),
    "json": lambda s: json.dumps(s.decode()).encode(),
}
CODINGS = {
    "plain": lambda d: d,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "gzip, br": lambda d: brotli.compress(gzip.compress(d)),
    "odd": lambda d: d,
}


class BrotliPieces:
    def __init__(self):
        self.packer = brotli.Compressor()

    def __call__(self, data):
        return self.packer.process(data) + self.packer.flush()


class Pieces:
    """An encoder that is flushed after each event, as servers of them do."""

    def __init__(self, packer, flush):
        self.packer, self.flush = packer, flush

    def __call__(self, data):
        return self.packer.compress(data) + self.packer.flush(self.flush)


FLUSHED = {
    "plain": lambda: lambda d: d,
    "gzip": lambda: Pieces(zlib.compressobj(wbits=31), zlib.Z_SYNC_FLUSH),
    "deflate": lambda: Pieces(zlib.compressobj(), zlib.Z_SYNC_FLUSH),
    "br": BrotliPieces,
    "zstd": lambda: Pieces(zstandard.ZstdCompressor().compressobj(),
                           zstandard.COMPRESSOBJ_FLUSH_BLOCK),
}


class Reader:
    def __init__(self, sock):
        self.sock, self.data = sock, b""

    def fill(self):
        more = self.sock.recv(65536)
        if not more:
            raise EOFError
        self.data += more

    def until(self, mark):
        while mark not in self.data:
            self.fill()
        head, self.data = self.data.split(mark, 1)
        return head + mark

    def exactly(self, n):
        while len(self.data) < n:
            self.fill()
        piece, self.data = self.data[:n], self.data[n:]
        return piece


def read_body(reader, headers, digest):
    """Returns (length, trailers)."""
    length = headers.get("content-length")
    if headers.get("transfer-encoding", "").lower() == "chunked":
        total = 0
        while True:
            size = int(reader.until(b"\r\n").split(b";")[0], 16)
            if not size:
                break
            digest.update(reader.exactly(size))
            total += size
            reader.exactly(2)
        trailers = []
        while True:
            line = reader.until(b"\r\n")[:-2]
            if not line:
                return total, trailers
            trailers.append(line.decode("latin1"))
    left = total = int(length or 0)
    while left:
        piece = reader.exactly(min(left, 1 << 16))
        digest.update(piece)
        left -= len(piece)
    return total, []


def note(record):
    with LOCK, open(CONFIG["log"], "a") as log:
        log.write(json.dumps(record) + "\n")


def reply(sock, status, headers, body=b""):
    head = f"HTTP/1.1 {status}\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers) + "\r\n"
    sock.sendall(head.encode("latin1") + body)


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def answer(sock, record, want):
    """False: close the connection."""
    path, headers = record["path"], dict((k.lower(), v) for k, v in record["headers"])
    # values stay out of the body, so that a secret seen by a client is a leak
    shown = dict(record, headers=[k for k, _ in record["headers"]])
    body = (json.dumps(shown) + "\n").encode()
    length = [("Content-Length", len(body))]
    if path.startswith("/reflect"):  # an origin that echoes the credential
        secret = headers.get("authorization", "")
        echo = [("X-Echo", secret), ("X-Echo", f"a {secret} b"), ("X-Raw", secret.split(" ")[-1])]
        if path.startswith("/reflect-in-parts"):
            sock.sendall(f"HTTP/1.1 200 OK\r\nX-First: {secret}\r\n".encode())
            time.sleep(0.1)
            sock.sendall(b"Content-Length: 0\r\n\r\n")
        else:
            reply(sock, "200 OK", echo + length, body)
    elif path.startswith("/echo/"):  # the credential in the body, as the path says
        _, _, form, coding, *size = urllib.parse.unquote(path).split("/")
        secret = headers.get("authorization", "none").split(" ")[-1].encode()
        text = b"before " * 1000 + FORMS[form](secret) + b" after" * 1000
        data = CODINGS[coding](text)
        named = [] if coding == "plain" else [("Content-Encoding", coding)]
        if form == "slowly":  # byte by byte over the secret
            reply(sock, "200 OK", [("Transfer-Encoding", "chunked")] + named)
            at = text.index(secret)
            sock.sendall(chunk(text[:at]))
            for i in range(len(secret)):
                sock.sendall(chunk(secret[i:i + 1]))
                time.sleep(0.005)
            sock.sendall(chunk(text[at + len(secret):]) + b"0\r\n\r\n")
        elif size:  # in chunks of so many bytes, some of them packets of their own
            reply(sock, "200 OK", [("Transfer-Encoding", "chunked")] + named)
            pieces = [chunk(data[i:i + int(size[0])]) for i in range(0, len(data), int(size[0]))]
            for i in range(0, len(pieces), 1 + len(pieces) // 40):
                sock.sendall(b"".join(pieces[i:i + 1 + len(pieces) // 40]))
                time.sleep(0.002)
            sock.sendall(b"0\r\n\r\n")
        else:
            reply(sock, "200 OK", [("Content-Length", len(data))] + named, data)
    elif path.startswith("/events"):
        coding = path.split("/")[2] if path.count("/") > 1 else "plain"
        named = [("Content-Encoding", coding)] if coding != "plain" else []
        reply(sock, "200 OK", [("Content-Type", "text/event-stream"),
                               ("Transfer-Encoding", "chunked")] + named)
        pack = FLUSHED[coding]()
        for i in range(5):
            sock.sendall(chunk(pack(f"data: {i} {time.time()}\n\n".encode())))
            time.sleep(0.5)
        sock.sendall(b"0\r\n\r\n")
    elif path.startswith("/trailers"):
        reply(sock, "200 OK", [("Transfer-Encoding", "chunked"), ("Trailer", "X-Sum")])
        sock.sendall(chunk(b"hello") + b"0\r\nX-Sum: 5\r\nX-Auth: " +
                     headers.get("authorization", "none").encode() + b"\r\n\r\n")
    elif path.startswith("/close"):
        reply(sock, "200 OK", [("Connection", "close")], b"until the end")
        return False
    elif path.startswith("/broken"):
        reply(sock, "200 OK", [("Content-Length", "1000")], b"only this")
        return False
    elif path.startswith("/nothing"):
        return False
    elif path.startswith("/hints"):
        reply(sock, "103 Early Hints", [("Link", "</a.css>; rel=preload")])
        reply(sock, "200 OK", length, body)
    elif path.startswith("/204"):
        reply(sock, "204 No Content", [])
    elif path.startswith("/304"):
        reply(sock, "304 Not Modified", [("ETag", '"x"'), ("Content-Length", "77")])
    elif path.startswith("/redirect"):
        reply(sock, "302 Found", [("Location", "https://other.lab.test/stolen"),
                                  ("Content-Length", "0")])
    elif path.startswith("/401"):
        reply(sock, "401 Unauthorized", [("WWW-Authenticate", 'Basic realm="lab"'),
                                         ("Content-Length", "0")])
    elif path.startswith("/registry"):  # wants a token that the realm hands out
        if headers.get("authorization") in ("Bearer granted", f"Basic {LOGIN}"):
            reply(sock, "200 OK", length, body)
        else:
            reply(sock, "401 Unauthorized", [("WWW-Authenticate", REALM), ("WWW-Authenticate", "Basic realm=lab"),
                                             ("Content-Length", "0")])
    elif path.startswith("/token"):
        token = b'{"token": "granted"}' if headers.get("authorization") == f"Basic {LOGIN}" else b'{}'
        reply(sock, "200 OK", [("Content-Length", len(token))], token)
    elif path.startswith("/big/"):
        n = int(path.split("/")[2])
        reply(sock, "200 OK", [("Content-Length", n)])
        block = bytes(range(256)) * 256
        while n:
            piece = block[:n]
            sock.sendall(piece)
            n -= len(piece)
    elif path.startswith("/slow/"):
        time.sleep(float(path.split("/")[2]))
        reply(sock, "200 OK", length, body)
    elif path.startswith("/twice"):  # smuggled: more than was asked for
        reply(sock, "200 OK", length, body + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nextra")
    elif path.startswith("/bad-head"):
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx")
        return False
    elif path.startswith("/upgrade") and headers.get("upgrade"):
        reply(sock, "101 Switching Protocols", [("Upgrade", headers["upgrade"]),
                                                ("Connection", "Upgrade"), ("X-Kept", "yes")])
        return "tunnel"
    else:
        reply(sock, "200 OK", length + [("Content-Type", "application/json")],
              b"" if record["method"] == "HEAD" else body)
    return headers.get("connection", "").lower() != "close"


def serve(sock, scheme, local, peer, sni):
    reader = Reader(sock)
    count = 0
    while True:
        head = reader.until(b"\r\n\r\n").decode("latin1")
        lines = head.split("\r\n")
        method, path, _ = lines[0].split(" ", 2)
        headers = [tuple(x.strip() for x in line.split(":", 1)) for line in lines[1:] if line]
        names = dict((k.lower(), v) for k, v in headers)
        record = {"scheme": scheme, "local": local, "peer": peer, "sni": sni, "nth": count,
                  "method": method, "path": path, "headers": headers}
        count += 1
        if path.startswith("/early"):  # answers without reading the body
            note(record)
            reply(sock, "413 Content Too Large", [("Content-Length", "0"), ("Connection", "close")])
            sock.shutdown(socket.SHUT_WR)
            return
        if names.get("expect") == "100-continue":
            if path.startswith("/refuse-expect"):
                note(record)
                reply(sock, "401 Unauthorized", [("Content-Length", "0")])
                return
            sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        digest = hashlib.sha256()
        record["length"], record["trailers"] = read_body(reader, names, digest)
        record["sha256"] = digest.hexdigest()
        note(record)
        again = answer(sock, record, names)
        if again == "tunnel":
            sock.sendall(reader.data)
            while True:
                data = sock.recv(65536)
                if not data:
                    return
                sock.sendall(data)
        if not again:
            return


def client(conn, scheme, local, context):
    peer, sni = conn.getpeername()[0], None
    try:
        conn.settimeout(60)
        if context:
            conn = context.wrap_socket(conn, server_side=True)
            sni = getattr(conn, "lab_sni", None)
        serve(conn, scheme, local, peer, sni)
    except (OSError, EOFError, ValueError):
        pass
    finally:
        try:
            conn.close()
        except OSError:
            pass


def tls_context():
    contexts = {}
    for name, (crt, key) in CONFIG["certs"].items():
        contexts[name] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        contexts[name].load_cert_chain(crt, key)
        contexts[name].set_alpn_protocols(["http/1.1"])

    def by_name(conn, name, _):
        conn.lab_sni = name
        if name in contexts:
            conn.context = contexts[name]
    contexts[""].sni_callback = by_name
    return contexts[""]


def listen(address, port, scheme, context):
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port))
    s.listen(512)
    while True:
        conn, _ = s.accept()
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=client, args=(conn, scheme, address, context),
                         daemon=True).start()


context = tls_context()
for address in sys.argv[2].split(","):
    threading.Thread(target=listen, args=(address, 443, "https", context), daemon=True).start()
    threading.Thread(target=listen, args=(address, 80, "http", None), daemon=True).start()
print("ready", flush=True)
threading.Event().wait()
