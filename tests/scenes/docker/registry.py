# SPDX-License-Identifier: Apache-2.0
"""registry.py - a registry of images that asks who it is, on a node's loopback

    with Registry(lab, "bearer") as registry:
        uri = registry.push("team/app")         # "127.0.0.1:PORT/team/app:1"

The part of the OCI distribution API that a pull needs: /v2/, manifests by tag and
digest, blobs, GET and HEAD, the rest of what broke off, over HTTP, which Docker speaks to
127.0.0.0/8 without being told. Who is asked how: "basic", the registry itself; "bearer", a service of
tokens, which takes Basic, as the large registries have it.

What it is like beside that is an attribute: .hangs and .dies act amid a blob,
.trickles sends it byte by byte, .echoes puts what it was sent into its refusal.
.gets counts what was given away whole.
"""
import base64
import collections
import gzip
import hashlib
import http.server
import io
import json
import re
import socket
import tarfile
import tempfile
import threading
from pathlib import Path

import image
from client import made_in

USER, PASSWORD = "lab-puller", "p4ss-of-the-registry-\"q\\~ü?>"
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
TOKEN = "a-token-of-the-lab"
PIECE = 64 * 1024


def basic(user=USER, password=PASSWORD):
    return base64.b64encode(f"{user}:{password}".encode()).decode()


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def layer_of_programs(folder):
    """What `sleep infinity` needs, as a tar archive."""
    tree = image.Tree()
    path = image.which("sleep")
    tree.add(path, "usr/bin/sleep")
    tree.need(path)
    out = Path(folder) / "layer.tar"
    image.make(out, tree)
    return out.read_bytes()


def with_file(layer, name, text):
    """One more file in it: Docker asks nobody for a layer that it knows, and asks once
    for one that two images have."""
    out = io.BytesIO(layer)
    with tarfile.open(fileobj=out, mode="a" if layer else "w") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


class Registry:
    def __init__(self, lab, asks="basic"):
        self.lab, self.asks = lab, asks
        self.blobs, self.manifests, self.layers = {}, {}, set()
        self.gets = collections.Counter()
        self.hangs = self.dies = self.trickles = self.echoes = False
        self.hung, self.stopping = threading.Event(), threading.Event()
        with tempfile.TemporaryDirectory() as folder:
            self.programs = layer_of_programs(folder)

    def __enter__(self):
        Handler = type("Handler", (Answer,), {"registry": self})
        listener = made_in(self.lab.gw, lambda: socket.create_server(("127.0.0.1", 0)))
        self.server = http.server.ThreadingHTTPServer(listener.getsockname(), Handler,
                                                      bind_and_activate=False)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # they break off, or a client does
        self.server.socket.close()
        self.server.socket = listener
        self.host = f"127.0.0.1:{listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def push(self, name, tag="1"):
        """An image of its own by that name; its uri."""
        text = f"{name}:{tag} of {self.host}\n"
        layers = [with_file(self.programs, "etc/which-image", text),
                  with_file(b"", "etc/this-image", text)]
        config = {"architecture": "amd64", "os": "linux", "config": {"User": ""},
                  "rootfs": {"type": "layers", "diff_ids": [digest(x) for x in layers]},
                  "history": [{"created_by": "lab"} for _ in layers]}
        packed = [gzip.compress(x, 1, mtime=0) for x in layers]
        self.layers |= {digest(x) for x in packed}
        manifest = json.dumps({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": self.blob(json.dumps(config).encode(), CONFIG),
            "layers": [self.blob(x, LAYER) for x in packed]}).encode()
        self.manifests[name, tag] = self.manifests[name, digest(manifest)] = manifest
        return f"{self.host}/{name}:{tag}"

    def blob(self, data, kind):
        self.blobs[digest(data)] = data
        return {"mediaType": kind, "size": len(data), "digest": digest(data)}


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    registry = None

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path, r = self.path.split("?")[0], self.registry
        words = path.split("/")
        if path == "/token":
            if self.said() == f"Basic {basic()}":
                self.say(200, json.dumps({"token": TOKEN}).encode(), "application/json")
            else:
                self.refuse("Basic")
        elif self.said() != (f"Basic {basic()}" if r.asks == "basic" else f"Bearer {TOKEN}"):
            self.refuse("Basic" if r.asks == "basic" else "Bearer")
        elif path == "/v2/":
            self.say(200, b"{}", "application/json")
        elif len(words) > 4 and words[-2] == "manifests":
            key = "/".join(words[2:-2]), words[-1]
            self.give(r.manifests.get(key), f"{key[0]}@{key[1]}", MANIFEST)
        elif len(words) > 4 and words[-2] == "blobs":
            self.give(r.blobs.get(words[-1]), words[-1], "application/octet-stream")
        else:
            self.fail(404, "NAME_UNKNOWN", "no such path")

    def said(self):
        return self.headers.get("Authorization", "")

    def refuse(self, how):
        challenge = f'{how} realm="lab"'
        if how == "Bearer":
            challenge = f'Bearer realm="http://{self.registry.host}/token",service="lab"'
        text = "authentication required"
        if self.registry.echoes and self.said():
            scheme, _, words = self.said().partition(" ")
            text = f"found {words}, which is {base64.b64decode(words).decode()}"
        self.fail(401, "UNAUTHORIZED", text, {"WWW-Authenticate": challenge})

    def fail(self, status, code, text, headers=None):
        self.say(status, json.dumps({"errors": [{"code": code, "message": text}]}).encode(),
                 "application/json", headers)

    def give(self, data, what, kind):
        if data is None:
            self.fail(404, "MANIFEST_UNKNOWN", "manifest unknown")
            return
        headers = {"Docker-Content-Digest": digest(data)}
        begin = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        at = int(begin[1]) if begin else 0
        if at:
            headers["Content-Range"] = f"bytes {at}-{len(data) - 1}/{len(data)}"
        self.say(206 if at else 200, data[at:], kind, headers)
        if self.command == "GET":
            self.registry.gets[what] += 1

    def say(self, status, data, kind, headers=None):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        r = self.registry
        if len(data) > PIECE and (r.hangs or r.dies or r.trickles):
            self.break_off(data)
        else:
            self.wfile.write(data)

    def break_off(self, data):
        """A large one stops in its middle, or nearly."""
        r = self.registry
        self.close_connection = True
        self.wfile.write(data[:PIECE])
        self.wfile.flush()
        if r.dies:
            self.connection.shutdown(socket.SHUT_RDWR)
        r.hung.set()
        at = PIECE
        while r.hangs or r.trickles:
            if r.stopping.wait(0.1):
                break
            if r.trickles:
                self.wfile.write(data[at:at + 1024])
                at += 1024
        raise ConnectionAbortedError("as it was told to")
