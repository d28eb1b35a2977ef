# SPDX-License-Identifier: Apache-2.0
"""execd.py - the real daemon on a loopback port, and a client that sees every byte

Execd starts $SALLYPORT_BUILD/bin/sallyport-execd and speaks HTTP/1.1 to it by
plain sockets, so that a scene can look at framing, timing and half-read streams.
"""
import json
import os
import select
import socket
import subprocess
import threading
import time
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("SALLYPORT_BUILD", ROOT / "build" / "release"))
BINARY = BUILD / "bin" / "sallyport-execd"
TERMINAL = ("error", "execution_complete")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode()

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


class Connection:
    """One connection: requests go out as bytes, replies come back parsed."""

    def __init__(self, port, token=None, timeout=60, rcvbuf=None):
        self.sock = socket.socket()
        if rcvbuf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.sock.settimeout(timeout)
        self.sock.connect(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.token, self.held = token, b""

    def send(self, method, path, body=None, headers=None):
        lines = [f"{method} {path} HTTP/1.1", "Host: execd"]
        if self.token:
            lines.append(f"X-EXECD-ACCESS-TOKEN: {self.token}")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            lines.append("Content-Type: application/json")
        if body is not None or method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {len(body or b'')}")
        lines += [f"{k}: {v}" for k, v in (headers or {}).items()]
        self.sock.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b""))

    def more(self):
        got = self.sock.recv(1 << 18)
        if not got:
            raise ConnectionError(f"the daemon closed after {self.held[-200:]!r}")
        self.held += got

    def until(self, end):
        while end not in self.held:
            self.more()
        found, self.held = self.held.split(end, 1)
        return found

    def exactly(self, count):
        parts, left = [], count
        while left:
            if not self.held:
                self.more()
            parts.append(self.held[:left])
            self.held = self.held[left:]
            left -= len(parts[-1])
        return b"".join(parts)

    def head(self):
        lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        headers = {}
        for line in lines[1:]:
            name, value = line.split(":", 1)
            headers.setdefault(name.lower(), value.strip())
        return int(lines[0].split(" ")[1]), headers

    def chunk(self):
        """The next chunk; b"" is the proper end, behind which trailers are kept."""
        size = int(self.until(b"\r\n"), 16)
        if not size:
            self.trailers = list(iter(lambda: self.until(b"\r\n"), b""))
            return b""
        data = self.exactly(size)
        assert self.exactly(2) == b"\r\n"
        return data

    def body(self, method, status, headers):
        if method == "HEAD" or status in (204, 304):
            return b""
        if headers.get("transfer-encoding") == "chunked":
            return b"".join(iter(self.chunk, b""))
        return self.exactly(int(headers["content-length"]))

    def request(self, method, path, body=None, headers=None):
        self.send(method, path, body, headers)
        self.hints, self.trailers = [], []
        status, found = self.head()
        while status in (100, 102, 103):
            self.hints.append((status, found))
            status, found = self.head()
        return Reply(status, found, self.body(method, status, found))

    def close(self):
        self.sock.close()


class Stream:
    """A reply that is an event stream: iterate it for events (dicts)."""

    def __init__(self, connection):
        self.connection = connection
        self.status, self.headers = connection.head()
        self.raw, self.held, self.ended = b"", b"", False
        self.keep_raw = True
        if self.status != 200:
            self.error = json.loads(connection.body("POST", self.status, self.headers))

    def read_chunk(self):
        data = self.connection.chunk()
        if not data:
            self.ended = True
        if self.keep_raw:
            self.raw += data
        self.held += data
        return data

    def __iter__(self):
        return self

    def __next__(self):
        while b"\n\n" not in self.held:
            if self.ended or not self.read_chunk():
                assert not self.held, f"a torn frame at the end: {self.held!r}"
                raise StopIteration
        frame, self.held = self.held.split(b"\n\n", 1)
        return json.loads(frame)

    def until(self, kind):
        """Events up to and with the first of this type."""
        found = []
        for event in self:
            found.append(event)
            if event["type"] == kind:
                return found
        raise AssertionError(f"no {kind} event in {found[-5:]}")

    def close(self):
        self.connection.close()


class Run:
    """What became of one execution whose stream was read to its end."""

    def __init__(self, stream):
        self.events = list(stream)
        self.raw, self.headers = stream.raw, stream.headers
        self.id = next((e["text"] for e in self.events if e["type"] == "init"), None)

    def texts(self, kind):
        return [e["text"] for e in self.events if e["type"] == kind]

    @property
    def stdout(self):
        return self.texts("stdout")

    @property
    def stderr(self):
        return self.texts("stderr")

    @property
    def error(self):
        return next((e["error"] for e in self.events if e["type"] == "error"), None)

    @property
    def exit_code(self):
        return int(self.error["evalue"]) if self.error else 0

    @property
    def terminal(self):
        return [e for e in self.events if e["type"] in TERMINAL]


class Execd:
    def __init__(self, tmp, token=None, env=None, init=False, args=(), words=(),
                 preexec=None, prefix=(), cwd=None, wait=True):
        self.tmp, self.token, self.port = Path(tmp), token, free_port()
        self.log_path = self.tmp / f"execd-{self.port}.log"
        flags = ["--listen", f"127.0.0.1:{self.port}"]
        if "JUPYTER_PORT" not in (env or {}):
            flags += ["--jupyter-port", "0"]  # one that all would share
        flags += args
        if init:
            flags.append("--init")
        if words:
            flags += ["--", *words]
        base = {k: v for k, v in os.environ.items()
                if not k.startswith(("EXECD_", "JUPYTER_"))}
        base.update({"TMPDIR": str(self.tmp)} | (env or {}))
        if token:
            base["EXECD_ACCESS_TOKEN"] = token
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [*prefix, str(BINARY), *flags], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=base, preexec_fn=preexec, cwd=cwd)
        self.pid = self.process.pid
        if wait:
            self.wait_ready()

    def wait_ready(self, seconds=20):
        end = time.monotonic() + seconds
        while True:
            try:
                if self.request("GET", "/ping").status in (200, 401):
                    return
            except OSError:
                pass
            assert self.process.poll() is None, f"the daemon ended: {self.log()}"
            assert time.monotonic() < end, f"the daemon is not ready: {self.log()}"
            time.sleep(0.005)

    def log(self):
        return self.log_path.read_text(errors="replace")

    # -- asking -------------------------------------------------------------

    def connect(self, **kw):
        kw.setdefault("token", self.token)
        return Connection(self.port, **kw)

    def request(self, method, path, body=None, headers=None, **kw):
        connection = self.connect(**kw)
        try:
            return connection.request(method, path, body, headers)
        finally:
            connection.close()

    def stream(self, path, body, method="POST", **kw):
        connection = self.connect(**kw)
        connection.send(method, path, body)
        return Stream(connection)

    def command(self, command, **more):
        """A stream of POST /command."""
        return self.stream("/command", {"command": command, **more})

    def run(self, command, path="/command", **more):
        """POST /command (or a session's run), read to its end."""
        stream = self.stream(path, {"command": command, **more})
        assert stream.status == 200, stream.error
        try:
            return Run(stream)
        finally:
            stream.close()

    def session(self, body=None):
        reply = self.request("POST", "/session", body)
        assert reply.status == 200, reply
        return reply.json()["session_id"]

    def in_session(self, session, command, **more):
        return self.run(command, path=f"/session/{session}/run", **more)

    def status(self, command_id):
        reply = self.request("GET", f"/command/status/{quote(command_id)}")
        assert reply.status == 200, reply
        return reply.json()

    def wait_finished(self, command_id, seconds=20):
        end = time.monotonic() + seconds
        while True:
            status = self.status(command_id)
            if not status["running"]:
                return status
            assert time.monotonic() < end, f"still running: {status}"
            time.sleep(0.01)

    # -- looking at the process ---------------------------------------------

    def rss_kib(self):
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise AssertionError("no VmRSS")

    def fd_count(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def children(self):
        """Pids whose parent is the daemon, zombies too."""
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                stat = Path(f"/proc/{name}/stat").read_text()
            except OSError:
                continue
            if int(stat.rsplit(")", 1)[1].split()[1]) == self.pid:
                found.append(int(name))
        return found

    def alive(self):
        return self.process.poll() is None and self.request("GET", "/ping").status == 200

    def stop(self, seconds=20):
        """SIGTERM; the exit code. What a sanitizer found fails the scene."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the daemon did not end: {self.log()}") from None
        for word in ("AddressSanitizer", "LeakSanitizer", "runtime error", "assertion"):
            assert word not in self.log(), self.log()
        return code


def wait_for(what, seconds=10, why="it did not come true"):
    """what() until it is true; its value."""
    end = time.monotonic() + seconds
    while True:
        value = what()
        if value:
            return value
        assert time.monotonic() < end, why
        time.sleep(0.01)


def quiet(sock, seconds):
    """True when nothing can be read from it for so long."""
    return not select.select([sock], [], [], seconds)[0]


def pid_lives(pid):
    """Is it there, and not a zombie?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def waits_during(execd, run):
    """What another client waits for each /ping while run() goes on: seconds, sorted."""
    waits, over = [], threading.Event()

    def look():
        other = execd.connect()
        while not over.is_set():
            begin = time.monotonic()
            assert other.request("GET", "/ping").status == 200
            waits.append(time.monotonic() - begin)
            time.sleep(0.001)
        other.close()

    looker = threading.Thread(target=look)
    looker.start()
    try:
        run()
    finally:
        over.set()
        looker.join()
    waits.sort()
    print(f"{len(waits)} answers, 95 in 100 within {waits[len(waits) * 95 // 100] * 1000:.0f} "
          f"ms, the longest after {waits[-1] * 1000:.0f} ms")
    return waits
