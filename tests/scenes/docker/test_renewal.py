# SPDX-License-Identifier: Apache-2.0
"""How long a sandbox lives: unused it ends, used it lives on, what lasts counts for as
long as it moves; a renewal that was answered holds, one that came too late is refused.

An access renews at most once a minute and the least extension is five minutes, so
all of this waits together, for a hundred seconds.
"""
import random
import threading
import time
from datetime import datetime, timedelta, timezone

from client import socket_in

# answers a request; speaks back after an upgrade
SERVER = r"""
import socket, threading
def serve(c):
    head = b""
    while b"\r\n\r\n" not in head:
        head += c.recv(4096)
    if b"upgrade:" not in head.lower():
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        return c.close()
    c.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n")
    while data := c.recv(4096):
        c.sendall(data)
s = socket.create_server(("", 8000), reuse_port=False)
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
"""
EXTEND_S, TOLD_S, LOOK_S = 300, 60, 30
AHEAD_S = (0.5, 1.5)  # of a renewal that is to race


def expiry(node, box):
    return datetime.fromisoformat(node.api.get(box)["expiresAt"].replace("Z", "+00:00"))


def made(node):
    return node.api.create(timeout=60, entrypoint=["python3", "-c", SERVER],
                           extensions={"access.renew.extend.seconds": str(EXTEND_S)})["id"]


class Upgraded:
    def __init__(self, node, box):
        self.socket = socket_in(node.lab.gw, ("127.0.0.1", 8081))
        self.socket.sendall(
            f"GET /sandboxes/{box}/proxy/8000/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
            "Upgrade: echo\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += self.socket.recv(4096)
        assert head.startswith(b"HTTP/1.1 101 "), head

    def echo(self):
        self.socket.sendall(b"?")
        assert self.socket.recv(1) == b"?"


def listening(node, box):
    def check():
        return node.api.reach(f"127.0.0.1:8081/sandboxes/{box}/proxy/8000", "/") == (200, "ok")
    node.lab.wait(check, 20, "the server inside")


class Racer(threading.Thread):
    """Renews one by about a second each time, until it is too late."""

    def __init__(self, node, seed):
        super().__init__(daemon=True)
        self.node, self.random = node, random.Random(seed)
        self.box = node.api.create(timeout=60)["id"]
        self.wrong, self.renewed, self.end = [], 0, None

    def run(self):
        try:
            until = time.monotonic() + 40
            while time.monotonic() < until and not self.end:
                self.turn()
            self.wrong += [] if self.end else ["was never too late"]
        except Exception as e:
            self.wrong.append(repr(e))

    def turn(self):
        ahead = self.random.uniform(*AHEAD_S)
        when = datetime.now(timezone.utc) + timedelta(seconds=ahead)
        status, value = self.node.api.call(
            "POST", f"/v1/sandboxes/{self.box}/renew-expiration",
            {"expiresAt": when.isoformat(timespec="milliseconds")})
        if status in (404, 409):
            self.end = status
            return
        if status == 400 and "not in the future" in value["message"]:
            return  # it took as long to come
        if status != 200:
            self.wrong.append(f"{status} {value}")
            return
        self.renewed += 1
        status, value = self.node.api.call("GET", f"/v1/sandboxes/{self.box}")
        if datetime.now(timezone.utc) < when and (
                status != 200 or value["status"]["state"] != "Running"):
            self.wrong.append(f"was renewed until {when} and is {status} {value}")
        # sometimes on time, sometimes not
        time.sleep(self.random.uniform(0, ahead * 1.1))


def test_used_ones_live_on(node):
    unused, asked, spoken, silent = boxes = [made(node) for _ in range(4)]
    begun = time.monotonic()
    racers = [Racer(node, i) for i in range(3)]
    for r in racers:
        r.start()
    for box in (asked, spoken, silent):
        listening(node, box)
    speaks, waits = Upgraded(node, spoken), Upgraded(node, silent)
    for box in (asked, spoken, silent):
        node.lab.wait(lambda b=box: expiry(node, b) > datetime.now(timezone.utc) + timedelta(
            seconds=EXTEND_S / 2), 10, "the first access to renew")
    first = {box: expiry(node, box) for box in (asked, spoken, silent)}
    while time.monotonic() < begun + TOLD_S + LOOK_S + 15:
        assert node.api.reach(f"127.0.0.1:8081/sandboxes/{asked}/proxy/8000", "/")[0] == 200
        speaks.echo()
        time.sleep(4)
    node.api.get(unused, expect=404)
    assert node.remains(unused) == []
    for box in (asked, spoken):
        assert expiry(node, box) >= first[box] + timedelta(seconds=TOLD_S - 5), box
    # open, but nobody speaks
    assert expiry(node, silent) == first[silent]
    waits.echo()
    for r in racers:
        r.join(60)
        assert not r.wrong and r.renewed, (r.wrong, r.renewed)
        # marked when it was due, and gone: none lives for ever
        node.lab.wait(lambda b=r.box: node.api.call("GET", f"/v1/sandboxes/{b}")[0] == 404, 10,
                      "the late one to go")
        assert node.remains(r.box) == []
    print("renewals before it was too late:", [r.renewed for r in racers])
    for box in boxes[1:]:
        node.api.delete(box)


def test_accesses_are_stored_once_a_minute(node):
    """Not with every request."""
    box = made(node)
    listening(node, box)
    node.lab.wait(lambda: expiry(node, box) > datetime.now(timezone.utc) + timedelta(
        seconds=EXTEND_S / 2), 10, "the first access to renew")
    first = expiry(node, box)
    for _ in range(20):
        assert node.api.reach(f"127.0.0.1:8081/sandboxes/{box}/proxy/8000", "/")[0] == 200
    time.sleep(0.5)
    assert expiry(node, box) == first
    node.api.delete(box)
