# SPDX-License-Identifier: Apache-2.0
"""test_b_ground.py - what the daemon is to those beside it: small, quick, discreet

Its secrets are not readable from outside, it needs nothing of the image, a
thousand connections cost little, and it ends when it is told to.
"""
import hashlib
import os
import re
import resource
import signal
import socket
import subprocess
import time

import pytest

from execd import BINARY, BUILD, ROOT, Connection, free_port

REFUSAL = b'{"error":"Unauthorized: invalid or missing header X-EXECD-ACCESS-TOKEN"}'
SANITIZED = b"__asan_init" in BINARY.read_bytes() if BINARY.exists() else False


def proc(pid, name):
    with open(f"/proc/{pid}/{name}", "rb") as f:
        return f.read()


def test_the_refusal_is_exact(start_execd):
    reply = start_execd(token="abc").request("GET", "/nothing", token="abd")
    assert (reply.status, reply.body) == (401, REFUSAL)
    assert reply.headers["content-type"] == "application/json"


def routes():
    """(method, a path of it) of each row of routes.def."""
    table = (ROOT / "src/execd/routes.def").read_text()
    found = re.findall(r'ROUTE\("([A-Z*]+)", "([^"]+)"', table)
    assert len(found) > 60
    return [(method.replace("*", "GET"),
             re.sub(r"{[^}]*}", "1", re.sub("{[ug]id}", "0", path)))
            for method, path in found]


def test_no_route_is_without_the_guard(start_execd):
    """Each row of the table, asked with all that is not the token."""
    def hash_of(text):
        return hashlib.sha256(text.encode()).hexdigest()

    execd = start_execd(args=("--token-sha256", hash_of("right"),
                              "--proxy-token-sha256", hash_of("gateway")))
    gateway = {"X-Sallyport-Proxy-Token": "gateway"}
    keys = [{}, {"X-EXECD-ACCESS-TOKEN": ""}, {"X-EXECD-ACCESS-TOKEN": "gateway"},
            {"X-EXECD-ACCESS-TOKEN": hash_of("right")}, {"Authorization": "Bearer right"},
            {"X-EXECD-ACCESS-TOKEN": "right\u00ff"}, gateway]
    for method, path in routes():
        for headers in keys:
            if headers is gateway and path.startswith("/proxy/"):
                continue
            reply = execd.request(method, path, headers=headers)
            assert (reply.status, reply.body) == (401, REFUSAL), (method, path, headers)
    # the gateway's token opens /proxy however it is spelled, and no way leads out of it
    for path in ("/proxy/../ping", "/proxy/%2e%2e/ping", "/proxy/1/../../ping", "//proxy/1",
                 "/%70roxy/../ping", "/ping?/proxy/", "http://h/ping", "/proxy", "/PROXY/1/"):
        reply = execd.request("GET", path, headers=gateway)
        assert reply.status in (400, 401, 502), (path, reply)
    assert execd.request("GET", "/ping", headers={"X-EXECD-ACCESS-TOKEN": "right"}).status == 200


def test_ids_of_requests_are_kept_or_made(execd):
    reply = execd.request("GET", "/ping", headers={"X-Request-ID": "mine-1.x"})
    assert reply.headers["x-request-id"] == "mine-1.x"
    made = {execd.request("GET", "/ping").headers["x-request-id"] for _ in range(3)}
    assert len(made) == 3 and all(len(i) == 32 for i in made)
    # errors and refusals too
    assert len(execd.request("GET", "/nothing").headers["x-request-id"]) == 32


def test_unknown_paths_and_methods(execd):
    assert execd.request("GET", "/nothing").status == 404
    reply = execd.request("DELETE", "/ping")
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")
    reply = execd.request("HEAD", "/ping")
    assert (reply.status, reply.body) == (200, b"")


@pytest.mark.parametrize("how", ["environment", "flag", "file"])
def test_the_token_is_not_left_to_be_read(start_execd, tmp_path, how):
    token = f"hush-{how}-0123456789"
    (tmp_path / "token").write_text(token + "\n")
    args = {"environment": (), "flag": ("--access-token", token),
            "file": ("--token-file", str(tmp_path / "token"))}[how]
    env = {"JUPYTER_TOKEN": "jupyter-hush"}
    if how == "environment":
        env["EXECD_ACCESS_TOKEN"] = token
    execd = start_execd(args=args, env=env)
    assert execd.request("GET", "/ping").status == 401
    assert execd.request("GET", "/ping", token=token).status == 200
    for name in ("cmdline", "environ"):
        shown = proc(execd.pid, name)
        assert token.encode() not in shown
        assert b"jupyter-hush" not in shown
    # the rest is as it was
    assert b"--listen" in proc(execd.pid, "cmdline")
    assert b"TMPDIR=" in proc(execd.pid, "environ")
    assert token not in execd.log() and "jupyter-hush" not in execd.log()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_others_of_its_user_may_not_look_into_it(start_execd):
    """PR_SET_DUMPABLE 0: its files in /proc are root's, its memory nobody's."""
    def drop():
        os.setgid(65534)
        os.setuid(65534)

    execd = start_execd(prefix=("setpriv", "--reuid=65534", "--regid=65534",
                                "--clear-groups"), token="t")
    assert os.stat(f"/proc/{execd.pid}/mem").st_uid == 0
    look = subprocess.run(["cat", f"/proc/{execd.pid}/environ"], preexec_fn=drop,
                          capture_output=True, check=False)
    assert look.returncode != 0 and b"ermission denied" in look.stderr


def test_both_families(start_execd):
    port = free_port()
    execd = start_execd(args=("--listen", f"[::]:{port}"), wait=False)
    execd.port = port
    execd.wait_ready()
    try:
        with socket.create_connection(("::1", port), timeout=5) as s:
            s.sendall(b"GET /ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert s.recv(4096).startswith(b"HTTP/1.1 200 OK")
    except OSError as e:
        if os.path.exists("/proc/net/if_inet6") and "::1" in os.popen(
                "ip -6 addr show dev lo").read():
            raise AssertionError(f"IPv6 is here and was not served: {e}") from e


@pytest.mark.parametrize("words, says", [
    (["--prot", "1"], "there is no flag --prot, did you mean --port?"),
    (["--listen", "localhost:80"], "expected an address with or without a port"),
    (["sleep", "1"], "expected -- before a program"),
])
def test_bad_words_get_a_sentence(words, says):
    ran = subprocess.run([str(BINARY), *words], capture_output=True, text=True,
                         timeout=10, check=False)
    assert ran.returncode == 2
    assert says in ran.stderr and ran.stderr.count("\n") == 1


def test_a_port_that_is_taken_is_named():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        at = f"127.0.0.1:{s.getsockname()[1]}"
        ran = subprocess.run([str(BINARY), "--listen", at], capture_output=True,
                             text=True, timeout=10, check=False)
    assert ran.returncode == 1
    assert f"could not listen on {at}" in ran.stderr


def test_it_runs_in_an_image_of_nothing(tmp_path):
    """No libc, no /etc, no /proc, no /dev: only itself."""
    if SANITIZED:
        pytest.skip("sanitizers are shared objects")
    if os.geteuid() != 0:
        pytest.skip("needs root for chroot")
    root = tmp_path / "image"
    root.mkdir()
    (root / "execd").write_bytes(BINARY.read_bytes())
    (root / "execd").chmod(0o755)
    port = free_port()
    with subprocess.Popen(["chroot", str(root), "/execd", "--listen",
                           f"127.0.0.1:{port}"], stderr=subprocess.DEVNULL) as p:
        try:
            end = time.monotonic() + 10
            while True:
                try:
                    connection = Connection(port)
                    break
                except OSError:
                    assert p.poll() is None and time.monotonic() < end
                    time.sleep(0.01)
            assert connection.request("GET", "/ping").status == 200
            connection.close()
        finally:
            p.terminate()


def ready_ms():
    port = free_port()
    at = ("127.0.0.1", port)
    begin = time.perf_counter()
    pid = os.posix_spawn(str(BINARY), [str(BINARY), "--listen", f"127.0.0.1:{port}"], {},
                         file_actions=[(os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)])
    try:
        while True:
            s = socket.socket()
            if s.connect_ex(at) == 0:
                s.sendall(b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n")
                assert s.recv(4096).startswith(b"HTTP/1.1 200")
                s.close()
                return (time.perf_counter() - begin) * 1000
            s.close()
            assert time.perf_counter() - begin < 10
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@pytest.mark.skipif(SANITIZED, reason="the sanitizers' start is not ours")
def test_it_is_ready_in_less_than_5_ms():
    """From the call that starts it to its first answer; the best of many, as
    the machine may be busy with others."""
    best = ready_ms()
    for _ in range(200):
        if best < 5:
            break
        best = min(best, ready_ms())
    print(f"ready in {best:.1f} ms")
    assert best < 5


@pytest.mark.skipif(SANITIZED, reason="the sanitizers' memory is not ours")
def test_it_is_small(execd):
    idle = execd.rss_kib()
    print(f"idle: {idle} KiB")
    assert idle < 3 * 1024


def test_a_thousand_connections_at_once(execd):
    before = execd.rss_kib()
    connections = [execd.connect() for _ in range(1200)]
    for c in connections:
        c.send("GET", "/ping")
    for c in connections:
        status, headers = c.head()
        assert (status, headers["content-length"]) == (200, "0")
    each = (execd.rss_kib() - before) / len(connections)
    print(f"{each:.1f} KiB for each idle connection")
    begin = time.monotonic()
    assert execd.request("GET", "/ping").status == 200
    assert time.monotonic() - begin < 1
    if not SANITIZED:
        assert each < 24
    for c in connections:
        c.close()


def test_who_may_not_ask_cannot_keep_out_who_may(start_execd):
    """The workload takes every connection there is, and has no token."""
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))

    execd = start_execd(token="t", preexec=few)
    client = execd.connect()
    assert client.request("GET", "/ping").status == 200
    flood = [execd.connect(token=None) for _ in range(300)]
    for c in flood[::2]:
        try:
            c.send("GET", "/ping")
        except OSError:
            pass  # it was closed already
    for _ in range(5):
        assert execd.request("GET", "/ping").status == 200
    assert client.request("GET", "/ping").status == 200
    assert execd.fd_count() < 150
    for c in flood:
        c.close()


def test_heads_that_never_end_and_bodies_that_are_too_long(execd):
    c = execd.connect()
    c.sock.sendall(b"GET /ping HTTP/1.1\r\nX: " + b"a" * 20000)
    assert c.head()[0] == 431
    c.close()
    c = execd.connect()
    c.sock.sendall(b"GET /ping HTTP/1.1\r\nHost: x\r\n"
                   b"Content-Length: 33554433\r\n\r\n")
    assert c.head()[0] == 413
    c.close()
    assert execd.request("GET", "/ping").status == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_when_it_is_told(execd, number):
    idle = execd.connect()
    assert idle.request("GET", "/ping").status == 200
    begin = time.monotonic()
    os.kill(execd.pid, number)
    assert execd.process.wait(10) == 0
    assert time.monotonic() - begin < 1.5
    assert idle.sock.recv(10) == b""


def test_a_request_under_way_is_answered_first(execd):
    """Its body is still coming when the signal is there."""
    c = execd.connect()
    c.sock.sendall(b"GET /ping HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab")
    time.sleep(0.1)
    os.kill(execd.pid, signal.SIGTERM)
    time.sleep(0.2)
    c.sock.sendall(b"cd")
    status, headers = c.head()
    assert (status, headers["connection"]) == (200, "close")
    assert execd.process.wait(10) == 0


def test_who_keeps_it_waiting_is_left(execd):
    c = execd.connect()
    c.sock.sendall(b"GET /ping HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab")
    time.sleep(0.1)
    begin = time.monotonic()
    os.kill(execd.pid, signal.SIGTERM)
    assert execd.process.wait(10) == 0
    assert 1.5 < time.monotonic() - begin < 4
    c.close()


def test_the_build_is_the_one_that_was_named():
    assert BUILD in BINARY.parents
