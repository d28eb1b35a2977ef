# SPDX-License-Identifier: Apache-2.0
"""GET /metrics and /metrics/watch: instant, framed by blank lines, of the cgroup"""
import json
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

from box import Box, wait_for
from root import cgroup_of_64_mib

NAMES = ["cpu_count", "cpu_used_pct", "mem_total_mib", "mem_used_mib", "timestamp"]


def check(m):
    assert list(m) == NAMES
    assert 0 < m["cpu_count"] <= os.cpu_count()
    assert 0 <= m["cpu_used_pct"] <= 100
    assert 0 < m["mem_used_mib"] <= m["mem_total_mib"]
    assert abs(m["timestamp"] - time.time() * 1000) < 5000


@pytest.fixture(scope="module")
def box():
    with Box() as b:
        yield b


def test_it_is_instant_and_in_range(box):
    begin = time.monotonic()
    for _ in range(20):
        status, m, _ = box.get("/metrics")
        assert status == 200
        check(m)
    assert time.monotonic() - begin < 0.5


def watch(box):
    s = socket.create_connection(("127.0.0.1", box.port), timeout=10)
    s.sendall(b"GET /metrics/watch HTTP/1.1\r\nHost: x\r\n\r\n")
    f = s.makefile("rb")
    head = {}
    assert f.readline().startswith(b"HTTP/1.1 200")
    while (line := f.readline().strip()):
        name, _, value = line.partition(b":")
        head[name.lower().decode()] = value.strip().decode()
    return s, f, head


def chunk(f):
    data = f.read(int(f.readline(), 16))
    assert f.readline() == b"\r\n"
    return data


def test_a_watcher_gets_one_frame_a_second(box):
    s, f, head = watch(box)
    assert head["content-type"] == "text/event-stream"
    assert head["cache-control"] == "no-cache"
    times = []
    for _ in range(4):
        frame = chunk(f)
        assert frame.endswith(b"}\n\n") and frame.count(b"\n") == 2
        check(json.loads(frame))
        times.append(time.monotonic())
    assert 2.5 < times[-1] - times[0] < 5
    s.close()


def test_watchers_that_leave_or_do_not_read_hold_up_nobody(box):
    """300 of them, half gone at once: no descriptor stays, the rest goes on."""
    fds = Path(f"/proc/{box.pid}/fd")
    before = len(list(fds.iterdir()))
    all_of_them = [watch(box) for _ in range(300)]
    for s, f, _ in all_of_them[:150]:
        f.close()
        s.close()
    check(box.get("/metrics")[1])
    wait_for(lambda: len(list(fds.iterdir())) <= before + 152, 5)
    s, f, _ = all_of_them[-1]
    chunk(f), chunk(f), chunk(f)
    for s, f, _ in all_of_them[150:]:
        f.close()
        s.close()
    wait_for(lambda: len(list(fds.iterdir())) <= before + 2, 5)


def test_the_percentage_follows_the_work(box):
    """A busy processor shows; of an idle machine nothing is claimed here."""
    s, f, _ = watch(box)
    chunk(f)
    burner = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        seen = [json.loads(chunk(f))["cpu_used_pct"] for _ in range(4)]
    finally:
        burner.kill()
        burner.wait()
        s.close()
    assert max(seen) >= 80 / os.cpu_count()


def test_the_limit_is_that_of_the_cgroup():
    folder = cgroup_of_64_mib(f"execd-metrics-{os.getpid()}")
    if not folder:
        pytest.skip("no memory cgroup can be made here")
    try:
        with Box(preexec_fn=lambda: (folder / "cgroup.procs").write_text(str(os.getpid()))) as b:
            m = b.get("/metrics")[1]
            check(m)
            assert m["mem_total_mib"] == 64
            assert m["mem_used_mib"] < 32
    finally:
        wait_for(lambda: not (folder / "cgroup.procs").read_text(), 5)
        folder.rmdir()
