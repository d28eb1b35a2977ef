# SPDX-License-Identifier: Apache-2.0
"""box.py - the daemon in a box of its own: a process namespace, a root folder

Box starts build/…/bin/sallyport-execd, as the first process of new namespaces
when it is told to, and speaks HTTP to it. It ends what it started by pid.
"""
import http.client
import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

BUILD = Path(os.environ.get("SALLYPORT_BUILD", Path(__file__).parents[3] / "build" / "dev"))
EXECD = (BUILD / "bin" / "sallyport-execd").resolve()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(what, seconds=10, step=0.01):
    """The first true value of what(), asked until then."""
    end = time.monotonic() + seconds
    while True:
        value = what()
        if value:
            return value
        assert time.monotonic() < end, f"nothing after {seconds} s"
        time.sleep(step)


class Box:
    """unshare: its options ("--pid", ...), or None for no namespaces."""

    def __init__(self, *words, unshare=None, env=None, tmp=None, prefix=None, ready=True, **more):
        self.port = free_port()
        inner = [*(prefix or [str(EXECD)]), "--listen", f"127.0.0.1:{self.port}", *words]
        argv = ["unshare", "--fork", *unshare, *inner] if unshare is not None else inner
        clean = {"PATH": os.environ["PATH"], "HOME": "/root", "LC_ALL": "C.UTF-8"}
        self.out = subprocess.PIPE if tmp is None else open(tmp / "out", "w+b")
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.out,
                                        stderr=subprocess.STDOUT, env={**clean, **(env or {})},
                                        start_new_session=True, **more)
        if ready:
            wait_for(self.is_ready)

    def is_ready(self):
        assert self.process.poll() is None, f"the daemon ended: {self.text()}"
        try:
            return self.get("/ping")[0] == 200
        except OSError:
            return False

    @property
    def pid(self):
        """Of the daemon itself, seen from outside."""
        if self.process.args[0] != "unshare":
            return self.process.pid
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int(wait_for(lambda: children.read_text().split())[0])

    def text(self):
        """What it has written. Of a pipe: after its end."""
        if self.out is subprocess.PIPE:
            return self.process.stdout.read().decode(errors="replace")
        self.out.flush()
        return Path(self.out.name).read_text(errors="replace")

    def connect(self, timeout=20):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None):
        """(status, parsed JSON or bytes, headers)"""
        c = self.connect()
        data = json.dumps(body) if isinstance(body, (dict, list)) else body
        c.request(method, path, data, headers or {})
        r = c.getresponse()
        text = r.read()
        c.close()
        if (r.getheader("Content-Type") or "").startswith("application/json"):
            return r.status, json.loads(text), r.headers
        return r.status, text, r.headers

    def get(self, path):
        return self.ask("GET", path)

    def events(self, method, path, body=None):
        """The frames of an event stream, to its end."""
        status, text, headers = self.ask(method, path, body)
        assert status == 200, text
        assert headers["Content-Type"] == "text/event-stream"
        return [json.loads(f) for f in text.decode().split("\n\n") if f]

    def end(self, how=signal.SIGKILL):
        """The exit status; the daemon gets `how`, and KILL when that is not enough."""
        if self.process.poll() is None:
            os.kill(self.pid, how)
        try:
            return self.process.wait(15)
        except subprocess.TimeoutExpired:
            os.kill(self.pid, signal.SIGKILL)
            self.process.wait(5)
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end()
