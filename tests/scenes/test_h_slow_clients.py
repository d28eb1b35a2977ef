# SPDX-License-Identifier: Apache-2.0
"""Case 52 without HTTP/2: clients that are slow on purpose, and clients that reset."""
import json
import os
import time

import pytest
from conftest import open_lab
from lab import ORIGIN4

API = "https://api.lab.test"
HANDSHAKE_MS, HEAD_MS, IDLE_MS = 2500, 1500, 2000
SLACK_S = 1.5

CLIENT = """
import json, os, socket, ssl, struct, sys, threading, time
how, count = sys.argv[1], int(sys.argv[2])
context = ssl.create_default_context(cafile=os.environ['SSL_CERT_FILE'])
HEAD = b'GET /slow-head HTTP/1.1\\r\\nHost: api.lab.test\\r\\n' + b''.join(
    b'X-%d: y\\r\\n' % i for i in range(100))
said = []
def tls():
    s = socket.create_connection((sys.argv[3], 443), timeout=20)
    return context.wrap_socket(s, server_hostname='api.lab.test')
def until_closed(s, start, send=b'', pause=0.1):
    s.settimeout(pause)
    data, more = b'', iter(send)
    try:
        while time.monotonic() - start < 15:
            byte = next(more, None)
            if byte is not None:
                s.sendall(bytes([byte]))
            try:
                got = s.recv(4096)
                if not got:
                    break
                data += got
            except TimeoutError:
                pass
    except OSError:
        pass
    said.append([time.monotonic() - start, data[:12].decode('latin1')])
def one():
    if how == 'silent':
        s = socket.create_connection((sys.argv[3], 443), timeout=20)
        until_closed(s, time.monotonic())
    elif how == 'hello':
        s = socket.create_connection((sys.argv[3], 443), timeout=20)
        until_closed(s, time.monotonic(), b'\\x16\\x03\\x01\\x02\\x00\\x01\\x00\\x01\\xfc\\x03\\x03' + bytes(500))
    elif how == 'plain':
        s = socket.create_connection((sys.argv[3], 80), timeout=20)
        s.sendall(HEAD[:60])
        until_closed(s, time.monotonic(), HEAD[60:])
    elif how == 'head':
        s = tls()
        s.sendall(HEAD[:60])
        until_closed(s, time.monotonic(), HEAD[60:])
    elif how == 'shake':
        inward, outward = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            context.wrap_bio(inward, outward, server_hostname='api.lab.test').do_handshake()
        except ssl.SSLWantReadError:
            pass
        s = socket.create_connection((sys.argv[3], 443), timeout=20)
        s.sendall(outward.read())
        until_closed(s, time.monotonic())
    elif how == 'idle':
        s = tls()
        s.sendall(b'GET /kept HTTP/1.1\\r\\nHost: api.lab.test\\r\\n\\r\\n')
        until_closed(s, time.monotonic())
    else:
        s = tls()
        s.sendall(b'GET /%s HTTP/1.1\\r\\nHost: api.lab.test\\r\\n\\r\\n' % how.encode())
        if how.startswith('big'):
            s.recv(1000)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        os.close(s.detach())
        said.append([0, ''])
threads = []
for i in range(count):
    threads.append(threading.Thread(target=one))
    threads[-1].start()
    if len(threads) % 50 == 0:
        [t.join() for t in threads]
[t.join() for t in threads]
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def slow():
    with open_lab("hs", config={"loops": 1, "timeouts": {
            "handshakeMs": HANDSHAKE_MS, "headMs": HEAD_MS, "idleMs": IDLE_MS}}) as lab:
        assert lab.sandboxes[0].curl(f"{API}/warm")[0] == 200
        yield lab


def descriptors(lab):
    return len(os.listdir(f"/proc/{lab.role_pid('gateway')}/fd"))


def attack(lab, how, count):
    """What each client met, while a neighbour is served; then all is as before."""
    before = descriptors(lab)
    p = lab.sandboxes[0].popen("/usr/bin/python3", "-c", CLIENT, how, count, ORIGIN4, stdout=-1)
    waits = []
    while p.poll() is None:
        start = time.monotonic()
        assert lab.sandboxes[1].curl(f"{API}/neighbour")[0] == 200
        waits.append(time.monotonic() - start)
        time.sleep(0.1)
    said = json.loads(p.communicate()[0])
    assert len(said) == count and max(waits) < 3, waits
    lab.wait(lambda: descriptors(lab) <= before + 2, IDLE_MS / 1000 + 3, "the descriptors")
    return said


@pytest.mark.parametrize("how,limit_ms", [
    ("silent", HEAD_MS), ("hello", HEAD_MS), ("shake", HANDSHAKE_MS), ("head", HEAD_MS), ("plain", HEAD_MS),
    ("idle", IDLE_MS)])
def test_case_52_slow_client_ends_by_its_deadline(slow, how, limit_ms):
    said = attack(slow, how, 20)
    seconds = [s for s, _ in said]
    assert max(seconds) < limit_ms / 1000 + SLACK_S, said
    assert min(seconds) > limit_ms / 1000 - 0.2, said
    if how in ("head", "plain"):
        assert {data for _, data in said} == {"HTTP/1.1 408"}, said
        assert slow.record(reason="client_timeout")


@pytest.mark.parametrize("how", ["quick", "slow/1", "big/50000000"])
def test_case_52_connections_that_are_reset_leave_nothing(slow, how):
    attack(slow, how, 150)
    slow.wait(lambda: slow.admin.get("/v1/status")["gateway"]["counters"]["connections_open"] == 0,
              5, "the connections to end")
