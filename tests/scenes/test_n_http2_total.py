# SPDX-License-Identifier: Apache-2.0
"""timeouts.totalMs: what moves all the time ends too, in every version and unopened."""
import json
import time

import pytest
from h2_lab import ADDRESS, HOST, WEB, ask, curl, open_peer
from test_n_http2_clients import INTERNAL, Client

TOTAL_S, SLACK_S = 1.5, 1
SPEAKER = """
import socket, threading, time
listener = socket.create_server(('%s', 2525))
def speak(sock):
    try:
        while True:
            sock.sendall(b'220 still here\\r\\n')
            time.sleep(0.1)
    except OSError:
        sock.close()
print('ready', flush=True)
while True:
    threading.Thread(target=speak, args=(listener.accept()[0],), daemon=True).start()
"""
LISTENER = """
import socket, time
start, heard, how = time.monotonic(), 0, 'end'
sock = socket.create_connection(('%s', 2525), timeout=10)
try:
    while data := sock.recv(4096):
        heard += len(data)
except ConnectionError:
    how = 'reset'
print(how, heard > 100, time.monotonic() - start)
"""


@pytest.fixture(scope="module")
def short():
    with open_peer("nt", timeouts={"totalMs": int(TOTAL_S * 1000)}) as lab:
        lab.peer.offers("h2")
        yield lab


def is_due(start):
    return TOTAL_S - 0.1 <= time.monotonic() - start < TOTAL_S + SLACK_S


def test_stream_that_never_rests(short):
    with Client(short.sandboxes[0]) as client:
        assert client.ask("/ok")["status"] == 200
        start = time.monotonic()
        endless, quick = client.ask_all({"path": "/drip/100"}, {"path": "/drip/3"})
        assert endless["status"] == 200 and endless["reset"] == INTERNAL and is_due(start), endless
        assert quick["body"] == "first\n" + "drop\n" * 3 and quick["reset"] is None, quick
        assert client.ask("/ok")["status"] == 200  # the connection goes on
    assert short.record(path="/drip/100")["reason"] == "too_long"


def test_answer_that_does_not_begin(short):
    start = time.monotonic()
    assert ask(short.sandboxes[0], "/hang")[0] == "504" and is_due(start)
    assert short.record(path="/hang")["reason"] == "too_long"


def test_download_over_http1(short):
    start = time.monotonic()
    r = curl(short.sandboxes[0], "/drip/101", "--http1.1")
    assert r.returncode in (18, 56) and "drop" in r.stdout and is_due(start), r
    assert short.record(path="/drip/101")["reason"] == "too_long"


def test_connection_that_is_spliced(short):
    short.in_origin("/usr/bin/python3", "-c", SPEAKER % ADDRESS[WEB],
                    stdout=open(short.tmp / "speaker", "wb"))
    short.wait(lambda: (short.tmp / "speaker").read_text(), 10, "the server")
    start = time.monotonic()
    r = short.sandboxes[0].run("/usr/bin/python3", "-c", LISTENER % ADDRESS[WEB], timeout=10)
    assert r.stdout.startswith("reset True") and is_due(start), r.stdout + r.stderr
    record = short.record(port=2525)
    assert record["kind"] == "tunnel" and record["reason"] == "too_long", json.dumps(record)
