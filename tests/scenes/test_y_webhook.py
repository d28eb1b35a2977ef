# SPDX-License-Identifier: Apache-2.0
"""The webhook: a receiver of the operator's is told of denied host names.

The receiver is on the node, as control is. What it answers is in a file, so that
a test has it fail; what it gets is another.
"""
import json
import os
import re
import signal
import subprocess
import time

import pytest
from conftest import open_lab
from lab import ORIGIN4, run

PORT = 9099
QUEUE, QUIET_S = 8, 3

RECEIVER = """
import http.server, json, pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        with open(folder / 'got', 'a') as f:
            print(json.dumps([time.time(), self.path, dict(self.headers), body.decode()]), file=f)
        answer = json.loads((folder / 'answer').read_text())
        time.sleep(answer.get('sleep', 0))
        self.send_response(answer['status'])
        self.send_header('Content-Length', '0')
        if answer['status'] == 302:
            self.send_header('Location', '/elsewhere')
        self.end_headers()
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[2])), Handler).serve_forever()
"""


class Receiver:
    def __init__(self, lab):
        self.folder = lab.tmp / "webhook"
        self.folder.mkdir()
        self.answer(204)
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", lab.gw, "/usr/bin/python3", "-c", RECEIVER, self.folder, str(PORT)])

    def answer(self, status, **more):
        (self.folder / "new").write_text(json.dumps({"status": status} | more))
        (self.folder / "new").rename(self.folder / "answer")

    def got(self, host=None):
        path = self.folder / "got"
        lines = [json.loads(x) for x in path.read_text().splitlines()] if path.exists() else []
        return [(at, path, headers, json.loads(body)) for at, path, headers, body in lines
                if not host or json.loads(body)["hostname"] == host]


@pytest.fixture(scope="module")
def lab():
    with open_lab("y", config={"webhook": {"url": f"http://localhost:{PORT}/denied?token=s3cret-of-url",
                                "queue": QUEUE, "quietS": QUIET_S, "timeoutMs": 1000}}) as lab:
        yield lab


@pytest.fixture(scope="module")
def receiver(lab):
    r = Receiver(lab)
    try:
        lab.wait(lambda: f":{PORT} " in run("ip", "netns", "exec", lab.gw, "ss", "-Hltn").stdout, 5,
                 "the receiver")
        yield r
    finally:
        r.process.terminate()
        r.process.wait()


@pytest.fixture(autouse=True)
def answers(receiver):
    receiver.answer(204)
    yield


def ask(sandbox, *hosts):
    return sandbox.python("""
import socket, sys
for host in sys.argv[1:]:
    try: socket.getaddrinfo(host, 80)
    except OSError: pass
""", *hosts)


def state(lab):
    return lab.admin.get("/v1/status")["webhook"]


def test_a_denied_name_is_told(lab, receiver, sandbox):
    ask(sandbox, "first.denied.test")
    lab.wait(lambda: receiver.got("first.denied.test"), 5, "the note")
    time.sleep(0.3)
    (_, path, headers, body), = receiver.got("first.denied.test")  # A and AAAA are one
    assert path == "/denied?token=s3cret-of-url"
    assert headers["Content-Type"] == "application/json"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", body["timestamp"])
    assert {k: body[k] for k in ("hostname", "source", "sandboxId", "kind", "port")} == {
        "hostname": "first.denied.test", "source": "opensandbox-egress",
        "sandboxId": sandbox.id, "kind": "dns", "port": 53}
    assert "policy lab" in body["reason"]
    assert set(body) == {"hostname", "timestamp", "source", "sandboxId", "kind", "port", "reason"}
    assert state(lab)["sent"] >= 1 and state(lab)["waiting"] == 0


def test_of_connections_too_without_path_or_header(lab, receiver, sandbox):
    status, _, _ = sandbox.curl("--resolve", f"http.denied.test:80:{ORIGIN4}",
                                "-H", "Authorization: Bearer hush", "-d", "body-hush",
                                "http://http.denied.test/path-hush?query-hush=1")
    assert status == 403
    sandbox.curl("--resolve", f"tls.denied.test:443:{ORIGIN4}", "https://tls.denied.test/")
    for host, port in (("http.denied.test", 80), ("tls.denied.test", 443)):
        lab.wait(lambda host=host: receiver.got(host), 5, host)
        body = receiver.got(host)[0][3]
        assert body["port"] == port and body["kind"] in ("http", "connect"), body
    assert "hush" not in (receiver.folder / "got").read_text()
    assert "s3cret-of-url" not in lab.log()


def test_the_same_name_is_told_once_in_a_while(lab, receiver, sandbox, neighbour):
    for attempt in range(5):  # a busy machine may take longer than the while
        name = f"again{attempt}.denied.test"
        start = time.monotonic()
        for _ in range(5):
            ask(sandbox, name)
        if time.monotonic() - start < QUIET_S:
            break
    ask(neighbour, name)
    lab.wait(lambda: len(receiver.got(name)) == 2, 5, "one of each sandbox")
    assert {b["sandboxId"] for *_, b in receiver.got(name)} == {sandbox.id, neighbour.id}
    time.sleep(QUIET_S + 0.5)
    ask(sandbox, name)
    lab.wait(lambda: len(receiver.got(name)) == 3, 5, "it is news again")


def test_what_is_allowed_or_only_fails_is_not_told(lab, receiver, sandbox):
    assert sandbox.curl("https://plain.lab.test/")[0] == 200
    with lab.policy([{"action": "allow", "target": "nowhere.lab.test"}]):
        ask(sandbox, "nowhere.lab.test")
        sandbox.curl("--resolve", f"nowhere.lab.test:80:{ORIGIN4}", "http://nowhere.lab.test/")
    ask(sandbox, "marker.denied.test")
    lab.wait(lambda: receiver.got("marker.denied.test"), 5, "the marker")
    assert not receiver.got("plain.lab.test") and not receiver.got("nowhere.lab.test")


def test_a_failing_receiver_is_asked_again_and_a_refusing_one_not(lab, receiver, sandbox):
    receiver.answer(503)
    ask(sandbox, "retried.denied.test")
    lab.wait(lambda: len(receiver.got("retried.denied.test")) == 2, 5, "the second try")
    receiver.answer(200)
    lab.wait(lambda: len(receiver.got("retried.denied.test")) == 3, 6, "the third try")
    times = [at for at, *_ in receiver.got("retried.denied.test")]
    assert 0.9 < times[1] - times[0] < 2 and 1.9 < times[2] - times[1] < 4, times
    before = state(lab)
    for status in (400, 302):
        receiver.answer(status)
        ask(sandbox, f"refused-{status}.denied.test")
        lab.wait(lambda: receiver.got(f"refused-{status}.denied.test"), 5, "the try")
    lab.wait(lambda: state(lab)["failed"] == before["failed"] + 2, 5, "the failures")
    time.sleep(1.5)
    assert len(receiver.got("refused-400.denied.test")) == 1
    assert [p for _, p, *_ in receiver.got("refused-302.denied.test")] == [
        "/denied?token=s3cret-of-url"]  # nothing is followed


def test_a_silent_receiver_holds_nothing_up(lab, receiver, sandbox):
    """The queue is full, the rest is dropped; meanwhile the APIs and the sandbox
    are answered as ever, and what waited is posted when it wakes up."""
    before = state(lab)
    receiver.answer(204, sleep=0.9)
    names = [f"n{i}.denied.test" for i in range(3 * QUEUE)]
    ask(sandbox, *names)
    lab.wait(lambda: state(lab)["dropped"] > before["dropped"], 5, "the first that is dropped")
    began = time.monotonic()
    assert lab.admin.get("/v1/policies")["policies"]
    assert sandbox.curl("http://plain.lab.test/")[0] == 200
    assert time.monotonic() - began < 2
    assert state(lab)["waiting"] <= QUEUE
    receiver.answer(204)
    lab.wait(lambda: state(lab)["waiting"] == 0, 20, "the queue to be empty")
    after = state(lab)
    told = {b["hostname"] for *_, b in receiver.got() if b["hostname"] in names}
    assert len(told) + after["dropped"] - before["dropped"] == len(names)
    assert len(lab.records(kind="dns", verdict="deny")) >= len(names)  # all of them


def test_a_restarted_control_goes_on(lab, receiver, sandbox):
    pid = next(r["pid"] for r in lab.admin.get("/v1/status")["roles"] if r["role"] == "control")
    os.kill(pid, signal.SIGKILL)

    def told():
        ask(sandbox, "after.denied.test")
        return receiver.got("after.denied.test")
    lab.wait(told, 20, "a note of the new one")


def test_a_receiver_whose_name_no_server_knows(sandbox_of_another):
    """Names are asked for by the confined role: it lives, and so do the APIs."""
    lab, box = sandbox_of_another
    ask(box, "lost.denied.test")
    lab.wait(lambda: state(lab)["waiting"], 5, "the note")
    lab.wait(lambda: state(lab)["failed"] == 1, 60, "it to be given up")
    assert state(lab) == {"sent": 0, "failed": 1, "dropped": 0, "waiting": 0}
    assert {r["restarts"] for r in lab.admin.get("/v1/status")["roles"]} == {0}
    assert "the webhook is not told of denied names" in lab.log()
    assert "receiver.nowhere.test" not in lab.log()


@pytest.fixture
def sandbox_of_another():
    with open_lab("yw", config={"webhook": {"url": "https://receiver.nowhere.test/x",
                                            "timeoutMs": 1000}}) as lab:
        yield lab, lab.sandboxes[0]
