# SPDX-License-Identifier: Apache-2.0
"""form.py - uploads as the clients of the contract write them"""
import json
import os
import select
import socket
import subprocess
import sys
import time

from execd import BINARY, Connection, Reply

SANITIZED = any(word in BINARY.read_bytes() for word in (b"__asan_init", b"__tsan_init")
                ) if BINARY.exists() else False

# How long another client may wait while file work goes on, in seconds. On a free processor it is
# half a millisecond; a loop that waits for the work itself would be far over this.
PATIENCE = 10 if SANITIZED else 2

TYPE = {"Content-Type": "multipart/form-data; boundary=----b0undary"}
CLOSING = b"------b0undary--\r\n"


def part(name, body, filename="blob", kind="application/octet-stream"):
    head = f'------b0undary\r\nContent-Disposition: form-data; name="{name}"'
    if filename is not None:
        head += f'; filename="{filename}"'
    return (head + f"\r\nContent-Type: {kind}\r\n\r\n").encode() + body + b"\r\n"


def metadata(path, **more):
    return part("metadata", json.dumps({"path": str(path)} | more).encode(), "metadata",
                "application/json")


def pair(path, body, **more):
    """As the Python client writes it: the file's name is its whole path."""
    return metadata(path, **more) + part("file", body, str(path))


def upload(execd, *parts, headers=None):
    return execd.request("POST", "/files/upload", b"".join(parts) + CLOSING, TYPE | (headers or {}))


def assert_flat(grown_kib, most_kib):
    """Memory that the daemon took more; what a sanitizer takes says nothing."""
    assert SANITIZED or grown_kib < most_kib, f"{grown_kib} KiB more"


class Slow:
    """An upload whose bytes are sent when the scene says so."""

    def __init__(self, execd, length=None, path="/files/upload"):
        self.connection = execd.connect()
        framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
        self.chunked = length is None
        token = f"X-EXECD-ACCESS-TOKEN: {execd.token}\r\n" if execd.token else ""
        self.connection.sock.sendall(
            (f"POST {path} HTTP/1.1\r\nHost: execd\r\n{token}{framing}\r\n"
             f"Content-Type: {TYPE['Content-Type']}\r\n\r\n").encode())

    def send(self, data):
        if self.chunked:
            data = b"%x\r\n" % len(data) + data + b"\r\n"
        self.connection.sock.sendall(data)

    def end(self):
        if self.chunked:
            self.connection.sock.sendall(b"0\r\n\r\n")
        return self.reply()

    def reply(self):
        status, headers = self.connection.head()
        return Reply(status, headers, self.connection.body("POST", status, headers))

    def cut(self):
        """Gone without a word, as a client that was killed."""
        self.connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                        b"\1\0\0\0\0\0\0\0")
        self.connection.close()


class Pinger:
    """Another client, a process of its own: .longest is how long it waited for /ping at most
    (in seconds) while the scene did something, .count how often it asked."""

    def __init__(self, execd):
        self.execd, self.longest, self.count = execd, 0.0, 0

    def __enter__(self):
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(self.execd.port), self.execd.token or ""],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_):
        said, _ = self.process.communicate()
        assert self.process.returncode == 0
        self.longest, self.count = float(said.split()[0]), int(said.split()[1])


def ping_until_told(port, token):
    connection = Connection(port, token or None)
    longest, count = 0.0, 0
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0.002)[0]:
        start = time.monotonic()
        assert connection.request("GET", "/ping").status == 200
        longest, count = max(longest, time.monotonic() - start), count + 1
    print(longest, count)


def many_files(folder, count):
    os.makedirs(folder, exist_ok=True)
    at = os.open(folder, os.O_RDONLY)
    for i in range(count):
        os.close(os.open(f"f{i:06d}.txt", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=at))
    os.close(at)


if __name__ == "__main__":
    ping_until_told(int(sys.argv[1]), sys.argv[2])
