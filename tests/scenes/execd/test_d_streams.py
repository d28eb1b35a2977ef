# SPDX-License-Identifier: Apache-2.0
"""test_d_streams.py - clients that are slow, gone, or a thousand; output without end"""
import os
import resource
import selectors
import socket
import time
from pathlib import Path

import pytest

from execd import Run, wait_for

ASAN = "asan" in os.environ.get("SALLYPORT_BUILD", "")
# memory of the daemon under a sanitizer says nothing
GROWTH_KIB = (256 << 10) if ASAN else (2 << 10)


def read_counting(stream, daemon, ping_every=64):
    """Reads a stream to its end; bytes of text and the largest RSS seen."""
    stream.keep_raw = False
    texts = chunks = most = 0
    tail = b""
    while True:
        data = stream.connection.chunk()
        if not data:
            break
        tail = (tail + data)[-4096:]
        texts += len(data)
        chunks += 1
        if chunks % ping_every == 0:
            most = max(most, daemon.rss_kib())
    return texts, most, tail


@pytest.mark.parametrize("what, command", [
    ("no line end", "head -c {n} /dev/zero | tr '\\0' x"),
    ("lines", "yes 'a line of usual length, as programs write them' | head -c {n}"),
    ("no text", "head -c {n} /dev/urandom"),
])
def test_output_without_end_in_flat_memory(execd, what, command):
    size = (64 << 20) if ASAN else (1 << 30)
    if what != "no line end":
        size //= 16
    execd.run(command.format(n=1 << 20))
    before = execd.rss_kib()
    begin = time.monotonic()
    stream = execd.command(command.format(n=size))
    count, most, tail = read_counting(stream, execd)
    took = time.monotonic() - begin
    print(f"\n{what}: {size >> 20} MiB in {took:.2f} s, {size / took / 1e6:.0f} MB/s of output, "
          f"{count / took / 1e6:.0f} MB/s of events; RSS {before} -> {most} KiB")
    assert count > size * 0.9
    assert b'"type":"execution_complete"' in tail
    assert most - before < GROWTH_KIB


def test_a_slow_reader_holds_back_only_its_own_program(execd, tmp_path):
    slow = execd.command(f"echo $$ > {tmp_path}/pid; exec seq -f '%01000.0f' 10000000",
                         rcvbuf=4096)
    slow.until("ping")
    pid = int(wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))

    def written():
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
        return int(next(n for n in lines if n.startswith("wchar:")).split()[1])

    def settled():
        before = written()
        time.sleep(0.3)
        return before > 10_000 and written() == before

    before_rss = execd.rss_kib()
    wait_for(settled, 30, "the program of a client that does not read goes on")
    held = written()
    assert held < 64 << 20
    assert execd.rss_kib() - before_rss < GROWTH_KIB
    # others are served as ever
    times = []
    for _ in range(30):
        begin = time.monotonic()
        assert execd.run("echo x").stdout == ["x"]
        times.append(time.monotonic() - begin)
    assert sorted(times)[15] < 0.1
    assert len(execd.run("yes | head -c 200000").stdout) == 100_000
    assert written() == held
    # and it goes on where it was when its client reads again
    expected = 0
    for event in slow:
        if event["type"] == "stdout":
            expected += 1
            assert int(event["text"].lstrip("0")) == expected
            if expected > held // 1001 + 1000:
                break
    assert written() > held
    slow.close()


def test_a_finished_command_of_a_slow_reader(execd):
    """Its output waits in the pipe and the daemon until the client reads; nothing is lost."""
    stream = execd.command("for i in 1 2 3 4 5 6 7 8 9; do printf '%020000d\\n' $i; done; exit 6",
                           rcvbuf=4096)
    command = stream.until("init")[0]["text"]
    assert execd.wait_finished(command)["exit_code"] == 6
    time.sleep(0.3)
    run = Run(stream)
    assert [t.lstrip("0") for t in run.stdout] == [str(n) for n in range(1, 10)]
    assert run.error["evalue"] == "6"


@pytest.mark.parametrize("how", ["close", "reset"])
def test_the_clients_leaving_does_not_end_the_command(execd, tmp_path, how):
    stream = execd.command(f"echo $$ > {tmp_path}/pid; for i in $(seq 30); do echo $i; sleep 0.05; "
                           f"done; head -c 1000000 /dev/zero; touch {tmp_path}/done; exit 3")
    command = stream.until("stdout")[0]["text"]
    if how == "reset":
        stream.connection.sock.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    stream.close()
    wait_for((tmp_path / "done").exists, 15, "it died with its client")
    assert execd.wait_finished(command)["exit_code"] == 3
    assert execd.alive()


def test_a_client_that_leaves_while_it_is_full(execd):
    fds = execd.fd_count()
    for _ in range(5):
        stream = execd.command("head -c 30000000 /dev/zero | tr '\\0' x", rcvbuf=4096)
        command = stream.until("ping")[0]["text"]
        time.sleep(0.05)
        stream.close()
        assert execd.wait_finished(command)["exit_code"] == 0
    wait_for(lambda: execd.fd_count() <= fds + 1, 5, "descriptors stay")


def test_a_cancelled_client_and_its_command(execd):
    stream = execd.command("sleep 60")
    command = stream.until("ping")[0]["text"]
    stream.close()
    time.sleep(0.2)
    assert execd.status(command)["running"]
    assert execd.request("DELETE", f"/command?id={command}").status == 200
    assert execd.status(command)["exit_code"] == 143


def test_a_thousand_streams(start_execd):
    count = 100 if ASAN else 1000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    execd = start_execd()
    idle = execd.rss_kib()
    begin = time.monotonic()
    streams = [execd.command(f"echo begin {i}; read x < /proc/self/fd/0; sleep 600", timeout=590_000)
               for i in range(count)]
    for i, stream in enumerate(streams):
        assert stream.until("stdout")[-1]["text"] == f"begin {i}"
    took = time.monotonic() - begin
    rss = execd.rss_kib()
    times = []
    for _ in range(50):
        begin = time.monotonic()
        execd.run("echo x")
        times.append(time.monotonic() - begin)
    print(f"\n{count} streams in {took:.1f} s, RSS {idle} -> {rss} KiB; echo beside them p50 "
          f"{sorted(times)[25] * 1000:.1f} ms")
    assert (rss - idle) / count < (1000 if ASAN else 40)
    # each is pinged
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            assert stream.held == b""
            selector.register(stream.connection.sock, selectors.EVENT_READ, stream)
        waiting = set(streams)
        end = time.monotonic() + 10
        while waiting and time.monotonic() < end:
            for key, _ in selector.select(1):
                stream = key.data
                if stream in waiting and next(stream)["type"] == "ping":
                    waiting.discard(stream)
        assert not waiting
    for stream in streams:
        stream.close()
    execd.stop()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_how_long_an_echo_takes(execd):
    """Reported; the bound is that of a contract that has a second of grace."""
    connection = execd.connect()
    times = []
    for _ in range(300):
        begin = time.perf_counter()
        connection.send("POST", "/command", {"command": "echo x"})
        status, headers = connection.head()
        assert b'"text":"x"' in connection.body("POST", status, headers)
        times.append((time.perf_counter() - begin) * 1000)
    times.sort()
    print(f"\necho: p50 {times[150]:.2f} ms, p99 {times[297]:.2f} ms; RSS {execd.rss_kib()} KiB")
    assert times[150] < 100


def test_head_and_old_clients(execd):
    """HTTP/1.0 has no chunks: the end of the connection is the end of the stream."""
    sock = socket.create_connection(("127.0.0.1", execd.port))
    body = b'{"command":"echo x; exit 2"}'
    sock.sendall(b"POST /command HTTP/1.0\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"
                 % (len(body), body))
    data = b""
    while True:
        got = sock.recv(65536)
        if not got:
            break
        data += got
    head, _, rest = data.partition(b"\r\n\r\n")
    assert b"chunked" not in head and head.lower().count(b"connection: ") == 1
    assert b"Connection: close" in head
    assert rest.endswith(b'"traceback":["exit status 2"]}}\n\n')
    background = execd.run("echo x", background=True).id
    execd.wait_finished(background)
    reply = execd.request("HEAD", f"/command/{background}/logs")
    assert (reply.status, reply.headers["content-length"]) == (200, "2")
