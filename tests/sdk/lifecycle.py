# SPDX-License-Identifier: Apache-2.0
"""lifecycle.py - just enough lifecycle API to hand an SDK its sandboxes

    lifecycle.py EXECD READY_FILE

A sandbox here is one process of the execution daemon on a free loopback port,
with a token and a home of its own: the SDKs, which know sandboxes only through
a lifecycle API, can be driven against the daemon alone. What the daemon must
do is all theirs; nothing in this file answers for it. Ports other than the
daemon's own are reached through its /proxy.
"""
import http.client
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

EXECD_PORT, EGRESS_PORT = 44772, 18080
TOKEN = "X-EXECD-ACCESS-TOKEN"


def now(seconds=0):
    return (datetime.now(timezone.utc) + timedelta(seconds=seconds)).isoformat()


class Sandbox:
    def __init__(self, execd, request):
        self.id = str(uuid.uuid4())
        # SDKs before 1.0.4 of Java do not know the headers of an endpoint
        open_to_all = (request.get("metadata") or {}).get("token") == "none"
        self.token = "" if open_to_all else secrets.token_urlsafe(16)
        self.home = tempfile.mkdtemp(prefix="sp-sdk-")
        self.metadata = request.get("metadata") or {}
        self.image = request.get("image") or {"uri": "none"}
        self.entrypoint = request.get("entrypoint") or ["tail", "-f", "/dev/null"]
        self.created, self.expires = now(), now(request.get("timeout") or 600)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        env = {"PATH": os.environ["PATH"], "HOME": self.home, "LANG": "C.UTF-8",
               "EXECD_ENVS": self.home + "/.env",
               **({"EXECD_ACCESS_TOKEN": self.token} if self.token else {}),
               **{k: str(v) for k, v in (request.get("env") or {}).items()}}
        self.process = subprocess.Popen(
            [execd, "--listen", f"127.0.0.1:{self.port}"], env=env, cwd=self.home,
            stdin=subprocess.DEVNULL, start_new_session=True)
        self.wait()

    def wait(self):
        for _ in range(500):
            c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            try:
                c.request("GET", "/ping", headers={TOKEN: self.token})
                if c.getresponse().status == 200:
                    return
            except OSError:
                time.sleep(0.01)
            finally:
                c.close()
        raise RuntimeError("the execution daemon does not answer")

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    def json(self):
        return {"id": self.id, "image": self.image, "status": {"state": "Running"},
                "metadata": self.metadata, "entrypoint": self.entrypoint,
                "createdAt": self.created, "expiresAt": self.expires}

    def endpoint(self, port):
        at = f"127.0.0.1:{self.port}"
        if port == EGRESS_PORT:
            return {"endpoint": f"{at}/proxy/{port}"}
        where = at if port == EXECD_PORT else f"{at}/proxy/{port}"
        return {"endpoint": where, **({"headers": {TOKEN: self.token}} if self.token else {})}


class Lifecycle(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lock = threading.Lock()
    sandboxes = {}
    execd = None

    def log_message(self, *_):
        pass

    def answer(self, status, body=None):
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("X-Request-ID", self.headers.get("X-Request-ID") or secrets.token_hex(8))
        if status != 204:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def body(self):
        n = int(self.headers.get("Content-Length") or 0)
        return json.loads(self.rfile.read(n) or b"{}")

    def find(self, key):
        with self.lock:
            found = self.sandboxes.get(key)
        if not found:
            self.answer(404, {"code": "DOCKER::SANDBOX_NOT_FOUND",
                              "message": f"Sandbox {key} not found"})
        return found

    def path_of(self):
        return re.sub(r"^/v1", "", urlsplit(self.path).path).strip("/").split("/")

    def do_POST(self):
        at, request = self.path_of(), self.body()
        if at == ["sandboxes"]:
            made = Sandbox(self.execd, request)
            with self.lock:
                self.sandboxes[made.id] = made
            self.answer(202, made.json())
        elif len(at) == 3 and at[2] == "renew-expiration":
            found = self.find(at[1])
            if found:
                found.expires = request["expiresAt"]
                self.answer(200, {"expiresAt": found.expires})
        else:
            self.answer(404, {"code": "NOT_FOUND", "message": self.path})

    def do_GET(self):
        at = self.path_of()
        if at == ["sandboxes"]:
            with self.lock:
                items = [s.json() for s in self.sandboxes.values()]
            page = {"page": 1, "pageSize": 20, "totalItems": len(items), "totalPages": 1,
                    "hasNextPage": False}
            return self.answer(200, {"items": items, "pagination": page})
        found = self.find(at[1]) if len(at) > 1 else None
        if not found:
            return None if len(at) > 1 else self.answer(404, {"code": "NOT_FOUND",
                                                             "message": self.path})
        if len(at) == 4 and at[2] == "endpoints":
            return self.answer(200, found.endpoint(int(at[3])))
        return self.answer(200, found.json())

    def do_DELETE(self):
        at = self.path_of()
        found = self.find(at[1])
        if found:
            with self.lock:
                del self.sandboxes[found.id]
            found.end()
            self.answer(204)


def main():
    execd, ready = sys.argv[1:]
    Lifecycle.execd = execd
    server = ThreadingHTTPServer(("127.0.0.1", 0), Lifecycle)
    server.daemon_threads = True
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    with open(ready + ".new", "w", encoding="ascii") as f:
        f.write(f"127.0.0.1:{server.server_port}")
    os.rename(ready + ".new", ready)
    server.serve_forever(0.1)
    for left in list(Lifecycle.sandboxes.values()):
        left.end()


main()
