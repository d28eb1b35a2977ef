# SPDX-License-Identifier: Apache-2.0
"""Terminals: a program at a terminal or at pipes, and its clients over WebSocket"""
import asyncio
import hashlib
import json
import os
import signal
import socket
import struct
import time

import pytest
from execd import pid_lives, wait_for
from ws import BINARY, PING, TEXT, Client, Closed, Terminal, WebSocket

RING = 1024 * 1024
# a sanitizer keeps what was freed for a while
QUARANTINE_KIB = 300 * 1024 if "asan" in os.environ.get("SALLYPORT_BUILD", "") else 0


@pytest.fixture
def shell(execd):
    """An interactive shell without echo, and its holder."""
    terminal = Terminal(execd)
    client = terminal.open()
    client.type("stty -echo; PS1=; bind 'set enable-bracketed-paste off'\n")
    client.run("true")
    terminal.client = client
    return terminal


# -- the terminal ---------------------------------------------------------------


def test_a_shell_at_a_terminal(execd):
    terminal = Terminal(execd)
    assert terminal.state() == {"session_id": terminal.id, "running": False, "output_offset": 0}
    client = terminal.open()
    assert client.connected == {"type": "connected", "session_id": terminal.id, "mode": "pty"}
    assert client.replays == []
    client.type("echo $((6*7))$TERM; tty; stty size\n")
    said = client.until_out(b"24 80\r\n")
    assert b"42" in said and b"/dev/pts/" in said
    state = terminal.state()
    assert state["running"] and state["output_offset"] >= len(said)
    client.type("exit 7\n")
    assert client.until("exit")["exit_code"] == 7
    closed = client.until_closed()
    assert (closed.code, closed.reason) == (1000, "process exited")
    assert not terminal.state()["running"]


def test_term_is_set_when_nothing_sets_it(start_execd):
    for given, seen in (("", "xterm-256color"), ("linux", "linux")):
        client = Terminal(start_execd(env={"TERM": given}), command="echo T=$TERM=").open()
        assert client.until_out(b"=\r\n") == f"T={seen}=\r\n".encode()


def test_it_is_the_controlling_terminal(shell):
    client = shell.client
    assert b"yes" in client.run("test -w /dev/tty && echo yes > /dev/tty")
    # a job in the foreground has a process group of its own; the keyboard's
    # signals go there
    client.type("sleep 1000; echo woke $?\n")
    time.sleep(0.3)
    client.type(b"\x03")
    assert b"woke" not in client.run("echo interrupted")
    client.type("cat\n")
    time.sleep(0.2)
    client.type(b"\x04")
    client.run("echo after end of file")


def test_signals_reach_the_foreground_job(shell):
    client = shell.client
    for name, code in (("SIGINT", 130), ("SIGQUIT", 131), ("SIGTERM", 143), ("SIGKILL", None)):
        # an interactive shell survives what its job dies of
        client.type("sh -c 'echo ready; exec sleep 1000'\n")
        client.until_out(b"ready\r\n")
        client.ask("signal", signal=name)
        if code:
            client.type("echo code $?\n")
            client.until_out(f"code {code}\r\n".encode())
    assert client.until("exit")["exit_code"] == 128 + signal.SIGKILL


def test_resize_is_seen_at_once(shell):
    client = shell.client
    client.type("sh -c 'trap \"stty size; exit\" WINCH; echo ready; while :; do sleep 0.1; done'\n")
    client.until_out(b"ready\r\n")
    client.ask("resize", cols=132, rows=43)
    client.until_out(b"43 132\r\n")
    assert b"43 132" in client.run("stty size")
    for cols, rows in ((0, 10), (-3, 10), (70000, 10), ("a", 10)):
        client.ask("resize", cols=cols, rows=rows)
        assert client.until("error")["code"] == "INVALID_FRAME"
    assert b"43 132" in client.run("stty size")


def test_a_size_given_before_is_kept_for_the_next_program(execd):
    terminal = Terminal(execd, command="stty size; read x; exit 3")
    client = terminal.open()
    client.until_out(b"24 80\r\n")
    client.ask("resize", cols=100, rows=30)
    client.type("\n")
    assert client.until("exit")["exit_code"] == 3
    again = terminal.open(f"?since={terminal.state()['output_offset']}")
    again.until_out(b"30 100\r\n")


def test_binary_output_is_passed_as_it_is(execd):
    terminal = Terminal(execd, command="stty raw -echo; head -c 300000 /dev/urandom | tee "
                                       f"{execd.tmp}/bytes; sleep 0.2")
    client = terminal.open()
    assert client.until_closed().code == 1000
    assert client.out == (execd.tmp / "bytes").read_bytes()


def test_full_screen_bytes(shell):
    client = shell.client
    screen = (b"\x1b[?1049h\x1b[22;0;0t\x1b[1;24r\x1b[H\x1b[2J" +
              b"".join(b"\x1b[%d;1H\x1b[38;5;%dm~\x1b[0m" % (row, row) for row in range(1, 25)) +
              "\u2500\u2502 \U0001f600".encode() + b"\xff\xfe\x1b[?1049l")
    (shell.daemon.tmp / "screen").write_bytes(screen)
    assert client.run(f"stty -opost; cat {shell.daemon.tmp}/screen") == screen


def test_json_stdin(shell):
    shell.client.ask("stdin", data="echo '\u00e4\U0001f600'$((1+1))\n")
    shell.client.until_out("\u00e4\U0001f6002\r\n".encode())


def test_a_command_with_a_directory(execd):
    made = execd.tmp / "not" / "there yet"
    terminal = Terminal(execd, command="pwd; exit 5", cwd=str(made))
    client = terminal.open()
    assert client.until("exit")["exit_code"] == 5
    assert client.out == f"{made}\r\n".encode()


def test_a_directory_that_vanished(execd):
    made = execd.tmp / "gone"
    terminal = Terminal(execd, cwd=str(made))
    made.rmdir()
    client = Client(execd.port, f"/pty/{terminal.id}/ws")
    error = client.until("error")
    assert error["code"] == "START_FAILED" and "gone" in error["error"]
    assert client.until_closed().code == 1011
    made.mkdir()
    assert terminal.open().run("pwd")


def test_a_long_command(execd):
    terminal = Terminal(execd, command=": " + "x" * 300000 + "\nexit 9")
    assert terminal.open().until("exit")["exit_code"] == 9


def test_death_by_a_signal_is_128_and_more(execd):
    assert Terminal(execd, command="kill -9 $$").open().until("exit")["exit_code"] == 137


def test_the_last_words_are_heard(execd):
    for i in range(20):
        client = Terminal(execd, command=f"printf 'a%.0s' $(seq 5000); echo end{i}; exit {i}").open()
        assert client.until("exit")["exit_code"] == i
        assert client.out.endswith(f"aaend{i}\r\n".encode()) and len(client.out) > 5000


def test_jobs_left_behind_do_not_delay_the_exit(execd):
    for query in ("", "?pty=0"):
        began = time.monotonic()
        client = Terminal(execd, command="setsid sleep 30 & echo $!; exit 4").open(query)
        assert client.until("exit")["exit_code"] == 4
        assert time.monotonic() - began < 5
        os.kill(int(client.out), signal.SIGKILL)


# -- clients that come and go ------------------------------------------------------


def test_it_goes_on_without_a_client(shell):
    before = shell.state()["output_offset"]
    shell.client.type("sleep 0.3; echo late\n")
    shell.client.close()
    wait_for(lambda: shell.state()["output_offset"] >= before + len(b"late\r\n"))
    again = wait_for(lambda: reopen(shell, f"?since={before}"))
    (offset, missed), = again.replays
    assert offset == before and b"late\r\n" in missed
    assert again.order[:2] == ["replay", "connected"]
    assert b"still" in again.run("echo still here")


def reopen(terminal, query="", **kw):
    """A client, once the one before is known to be gone."""
    client = terminal.open(query, **kw)
    return client if client.status == 101 else None


def test_replay_from_any_offset(execd):
    terminal = Terminal(execd, command="stty raw; seq 1 2000; exec sleep 100")
    client = terminal.open()
    whole = client.until_out(b"\n2000\n")
    client.close()
    end = terminal.state()["output_offset"]
    assert end == len(whole)
    for since in (0, 1, 1000, end - 1, end, end + 5, "x", "-1", 2 ** 63):
        again = wait_for(lambda s=since: reopen(terminal, f"?since={s}"))
        begin = since if isinstance(since, int) and since <= end else 0 if since in ("x", "-1") \
            else end
        if begin < end:
            assert again.replays == [(begin, whole[begin:])]
        else:
            assert again.replays == []
        again.close()


def test_nobody_reads_and_the_ring_turns(execd):
    """10 MiB without a client: the program is not held, memory is a ring."""
    terminal = Terminal(execd, command=f"stty raw; read x; seq 1000000 1500000; echo over "
                                       f"> {execd.tmp}/over; exec sleep 100")
    client = terminal.open()
    client.type("\n")
    client.close()
    before = execd.rss_kib()
    wait_for(lambda: (execd.tmp / "over").exists(), 60)
    assert execd.rss_kib() - before < 3000 + QUARANTINE_KIB
    total = terminal.state()["output_offset"]
    assert total >= 500001 * 8
    again = terminal.open()
    (offset, data), = again.replays
    assert len(data) == RING and offset + RING == total
    assert data.endswith(b"\n1499999\n1500000\n")


def test_the_second_client_is_refused(shell):
    second = shell.open()
    assert second.status == 409 and second.error["code"] == "ALREADY_CONNECTED"
    assert shell.client.run("echo held") == b"held\r\n"


def test_takeover(shell):
    first = shell.client
    first.run("here=1")
    second = shell.open("?takeover=1")
    assert second.status == 101
    closed = first.until_closed()
    assert (closed.code, closed.reason) == (4001, "TAKEN_OVER")
    assert second.run("echo here=$here") == b"here=1\r\n"
    # without a holder it is simply the next one
    second.close()
    third = shell.open("?takeover=1")
    assert third.run("echo third") == b"third\r\n"


def test_a_bad_handshake_takes_nothing_over(shell):
    for path, status in ((f"/pty/{shell.id}/ws?takeover=1", 426),):
        assert shell.daemon.request("GET", path).status == status
        old = WebSocket(shell.daemon.port, path, version="8")
        assert old.status == 426 and old.headers["sec-websocket-version"] == "13"
    assert shell.client.run("echo held") == b"held\r\n"


def test_takeover_from_one_who_does_not_read(execd):
    terminal = Terminal(execd, command="yes")
    lazy = terminal.open(rcvbuf=4096)
    time.sleep(0.5)
    began = time.monotonic()
    client = terminal.open("?takeover=1&since=99999999999")
    client.until_out(b"y\r\ny\r\n")
    assert time.monotonic() - began < 3
    lazy.close()


def test_viewers(shell):
    holder = shell.client
    offset = shell.state()["output_offset"]
    viewers = [shell.open(f"?mode=viewer&since={offset}") for _ in range(3)]
    assert all(v.connected == {"type": "connected", "session_id": shell.id, "mode": "pty",
                               "role": "viewer"} for v in viewers)
    said = holder.run("echo all see this") + b"@@\r\n"
    for viewer in viewers:
        seen = b""
        while len(seen) < len(said):
            assert viewer.step() == "replay"
            at, data = viewer.replays[-1]
            assert at == offset + len(seen)
            seen += data
        assert seen == said
    # looking only
    viewer = viewers[0]
    viewer.ask("ping")
    viewer.until("pong")
    for i, ask in enumerate((lambda: viewer.type("echo no\n"),
                             lambda: viewer.ask("signal", signal="SIGKILL"),
                             lambda: viewer.ask("resize", cols=9, rows=9),
                             lambda: viewer.ask("stdin", data="x"))):
        ask()
        assert viewer.until("error")["code"] == "READ_ONLY"
    viewer.type("x")
    assert viewer.until_closed().code == 1008
    assert b"24 80" in holder.run("stty size")
    # the end is told to all
    holder.type("exit 3\n")
    for client in (holder, *viewers[1:]):
        assert client.until("exit")["exit_code"] == 3
        assert client.until_closed().code == 1000


def test_a_viewer_needs_a_running_program(execd):
    terminal = Terminal(execd)
    viewer = terminal.open("?mode=viewer")
    assert (viewer.status, viewer.error["code"]) == (409, "VIEWER_REQUIRES_RUNNING_SESSION")


def test_a_slow_viewer_holds_up_nobody(execd):
    terminal = Terminal(execd, command="stty raw -echo; read x; seq 1 3000000; echo done; read x")
    holder = terminal.open()
    viewer = terminal.open("?mode=viewer", rcvbuf=4096)
    before = execd.rss_kib()
    holder.type("\n")
    whole = holder.until_out(b"\ndone\n", 60)
    assert len(whole) > 2 * RING
    assert execd.rss_kib() - before < 4000 + QUARANTINE_KIB
    # he sees the gap, and then everything that is still there
    end = terminal.state()["output_offset"]
    at, gap = 0, False
    while at < end:
        viewer.step()
        offset, data = viewer.replays.pop()
        assert offset >= at and data == whole[offset:offset + len(data)]
        gap |= offset > at
        at = offset + len(data)
    assert gap


def stands_still(terminal):
    """Where its output has come to, if it goes no further."""
    before = terminal.state()["output_offset"]
    time.sleep(1)
    return before if terminal.state()["output_offset"] == before else 0


def test_a_slow_holder_holds_back_his_program_and_loses_nothing(execd):
    terminal = Terminal(execd, command="stty raw -echo; seq 1 2000000; echo done")
    before = execd.rss_kib()
    holder = terminal.open(rcvbuf=4096)
    held = wait_for(lambda: stands_still(terminal))
    assert execd.rss_kib() - before < 3000 + QUARANTINE_KIB
    assert execd.request("GET", "/ping").status == 200
    assert holder.until("exit")["exit_code"] == 0
    assert holder.out == b"".join(b"%d\n" % i for i in range(1, 2000001)) + b"done\n"
    assert held < len(holder.out)


def test_a_holder_who_takes_nothing_is_dropped(execd):
    """The rule of 10 s: then the program goes on."""
    terminal = Terminal(execd, command="stty raw -echo; seq 1 3000000; sleep 100")
    holder = terminal.open(rcvbuf=4096)
    time.sleep(1)
    held = terminal.state()["output_offset"]
    wait_for(lambda: terminal.state()["output_offset"] > held + 2 * RING, 20)
    assert terminal.open().status == 101
    holder.close()


# -- pipes -----------------------------------------------------------------------


def test_pipe_mode(execd):
    terminal = Terminal(execd, command="echo out; echo err >&2; test -t 0 || echo no terminal; "
                                       "read line; echo \"got $line\"; exit 6")
    client = terminal.open("?pty=0")
    assert client.connected["mode"] == "pipe"
    client.type("some words\n")
    assert client.until("exit")["exit_code"] == 6
    assert client.out == b"out\nno terminal\ngot some words\n" and client.err == b"err\n"


def test_stdout_and_stderr_keep_their_kind_under_pressure(execd):
    terminal = Terminal(execd, command="for i in $(seq 1 3000); do echo o$i; echo e$i >&2; done")
    client = terminal.open("?pty=0", rcvbuf=4096)
    time.sleep(0.5)
    assert client.until("exit")["exit_code"] == 0
    assert client.out == b"".join(b"o%d\n" % i for i in range(1, 3001))
    assert client.err == b"".join(b"e%d\n" % i for i in range(1, 3001))


def test_much_stdin_is_held_back_not_stored(execd):
    total = 32 << 20
    terminal = Terminal(execd, command=f"until test -e {execd.tmp}/go; do sleep 0.05; done; "
                                       f"head -c {total} | sha1sum")
    client = terminal.open("?pty=0")
    before = execd.rss_kib()
    data = os.urandom(1 << 20) * 32
    sent = client.frame(BINARY, b"\0" + data)
    client.sock.settimeout(0.5)
    taken = 0
    with pytest.raises(socket.timeout):
        while taken < len(sent):
            taken += client.sock.send(sent[taken:taken + 65536])
    assert execd.rss_kib() - before < 3000 + QUARANTINE_KIB
    (execd.tmp / "go").touch()
    client.sock.settimeout(20)
    client.sock.sendall(sent[taken:])
    client.ask("ping")
    client.until("pong")
    assert client.until("exit")["exit_code"] == 0
    assert client.out.split()[0].decode() == hashlib.sha1(data).hexdigest()


def test_a_program_that_closed_its_stdin(execd):
    client = Terminal(execd, command="exec <&-; echo closed; sleep 1; echo still").open("?pty=0")
    client.until_out(b"closed\n")
    client.type("anything")
    assert client.until("error")["code"] == "STDIN_WRITE_FAILED"
    client.until_out(b"still\n")
    assert client.until("exit")["exit_code"] == 0


def test_what_runs_on_behind_a_pipe_is_not_killed(execd):
    terminal = Terminal(execd, command=f"(sleep 0.5; echo late; sleep 0.2; echo later; "
                                       f"echo $? > {execd.tmp}/lived) & echo early; exit 0")
    client = terminal.open("?pty=0")
    assert client.until("exit")["exit_code"] == 0
    assert client.out == b"early\n"
    wait_for(lambda: (execd.tmp / "lived").exists() and (execd.tmp / "lived").read_text() == "0\n")
    wait_for(lambda: terminal.state()["output_offset"] == len(b"early\nlate\nlater\n"))


# -- protocol ----------------------------------------------------------------------


def test_wishes_that_make_no_sense(shell):
    client = shell.client
    for opcode, data in ((TEXT, b"hello"), (TEXT, b"{}"), (TEXT, b'{"type":"dance"}'),
                         (TEXT, b'{"type":"signal","signal":"SIGFOO"}'), (TEXT, b"[1]"),
                         (BINARY, b"\x01ls\n"), (BINARY, b"\xffls\n"), (TEXT, b" " * 300000)):
        client.send(opcode, data)
        error = client.until("error")
        assert error["code"] == "INVALID_FRAME" and error["error"]
    client.send(BINARY, b"")
    client.send(BINARY, b"\0")
    client.ask("ping")
    client.until("pong")
    assert client.run("echo fine") == b"fine\r\n"


@pytest.mark.parametrize("frame,code", [
    (b"\xc2\x80abcd", 1002),               # a reserved bit
    (b"\x83\x80abcd", 1002),               # a reserved opcode
    (b"\x82\x01x", 1002),                  # not masked
    (b"\x80\x80abcd", 1002),               # continues nothing
    (b"\x09\x80abcd", 1002),               # a fragmented ping
    (b"\x81\x81\0\0\0\0\xff", 1007),       # not UTF-8
    (b"\x82\xff\xff" + bytes(7) + b"abcd", 1002),  # a length of 64 bits
    (b"\x82\xff\x7f" + bytes(7) + b"abcd", 1009),
])
def test_broken_frames_end_the_connection_and_nothing_else(shell, frame, code):
    viewer = shell.open("?mode=viewer")
    shell.client.sock.sendall(frame)
    assert shell.client.until_closed().code == code
    again = wait_for(lambda: reopen(shell))
    assert again.run("echo alive") == b"alive\r\n"
    viewer.close()


def test_fragments_and_pings_between_them(shell):
    client = shell.client
    client.send(BINARY, b"\0echo fr", fin=False)
    client.send(PING, b"in between")
    client.send(0, b"agm", fin=False)
    client.send(0, b"ents\n")
    client.until_out(b"fragments\r\n")


def test_close_is_answered(shell):
    shell.client.send(8, struct.pack(">H", 1000) + b"bye")
    closed = shell.client.until_closed()
    assert closed.code == 1000
    assert shell.client.sock.recv(100) == b""
    assert wait_for(lambda: reopen(shell)).run("echo on") == b"on\r\n"


def test_a_real_client(execd):
    """python3-websockets: handshake, fragments, pings, close."""
    import websockets

    terminal = Terminal(execd, command="stty raw -echo; cat")

    async def talk():
        uri = f"ws://127.0.0.1:{execd.port}/pty/{terminal.id}/ws"
        async with websockets.connect(uri, ping_interval=0.1, ping_timeout=5,
                                      max_size=None) as ws:
            assert json.loads(await ws.recv())["type"] == "connected"
            await asyncio.sleep(0.5)
            blob = os.urandom(200000)
            await ws.send([b"\0" + blob[:1000], blob[1000:]])
            echo = b""
            while len(echo) < len(blob):
                message = await ws.recv()
                assert message[0] == 1
                echo += message[1:]
            assert echo == blob
            await (await ws.ping(b"now"))
        assert ws.close_code == 1000

    asyncio.run(asyncio.wait_for(talk(), 30))


# -- the table ---------------------------------------------------------------------


def test_unknown_and_malformed(execd):
    for method, path in (("GET", "/pty/nope"), ("DELETE", "/pty/nope"), ("GET", "/pty/nope/ws")):
        reply = execd.request(method, path)
        assert reply.status == 404 and reply.json()["code"] == "CONTEXT_NOT_FOUND"
    for body in (b"{", b"[]", b'{"cwd":3}', b'{"command":["ls"]}', b'{"command":"a\\u0000b"}'):
        reply = execd.request("POST", "/pty", body)
        assert reply.status == 400 and reply.json()["code"] == "INVALID_REQUEST_BODY", body
    (execd.tmp / "file").write_text("")
    assert execd.request("POST", "/pty", {"cwd": f"{execd.tmp}/file/x"}).status == 500


def test_delete_ends_everything(shell):
    client = shell.client
    viewer = shell.open("?mode=viewer")
    shell_pid = int(client.run("echo $$"))
    client.type("sleep 1000 & echo $!; sleep 2000\n")
    job = int(client.until_out(b"\r\n").split()[-1])
    before = shell.daemon.fd_count()
    reply = shell.delete()
    assert reply.status == 200 and reply.body == b""
    for c in (client, viewer):
        assert c.until("error")["code"] == "SESSION_GONE"
        assert c.until_closed().code == 1001
        c.close()
    wait_for(lambda: not pid_lives(shell_pid))
    wait_for(lambda: shell.daemon.fd_count() < before)
    assert shell.daemon.request("GET", f"/pty/{shell.id}").status == 404
    wait_for(lambda: not pid_lives(job))
    wait_for(lambda: shell.daemon.children() == [])


def test_the_token_guards_it(start_execd):
    daemon = start_execd(token="secret")
    terminal = Terminal(daemon)
    assert WebSocket(daemon.port, f"/pty/{terminal.id}/ws").status == 401
    assert terminal.open(token="secret").run("true") is not None


def test_there_is_a_limit_and_the_oldest_make_room(execd):
    connection = execd.connect()
    ids = [connection.request("POST", "/pty").json()["session_id"] for _ in range(130)]
    assert [connection.request("GET", f"/pty/{i}").status for i in ids[:3]] == [404, 404, 200]
    assert connection.request("GET", f"/pty/{ids[-1]}").status == 200


def test_many_terminals_leave_nothing_behind(execd):
    fds, children = execd.fd_count(), execd.children()
    for _ in range(3):
        terminals = [Terminal(execd, command="cat") for _ in range(20)]
        clients = [t.open() for t in terminals]
        for client in clients:
            client.type("x\n")
        for client in clients:
            client.until_out(b"x\r\n")
        for terminal, client in zip(terminals, clients):
            assert terminal.delete().status == 200
            client.close()
    wait_for(lambda: execd.fd_count() <= fds + 1)
    wait_for(lambda: execd.children() == children)


def test_the_daemon_ends_and_takes_its_terminals_along(start_execd):
    daemon = start_execd()
    client = Terminal(daemon, command="echo $$; exec sleep 1000").open()
    pid = int(client.until_out(b"\r\n"))
    daemon.stop()
    wait_for(lambda: not pid_lives(pid))


def test_pings_come_by_themselves(execd):
    """Every 30 s; one who answers none for 60 s is given up."""
    terminal = Terminal(execd, command="sleep 1000")
    client = terminal.open(answer_pings=False, timeout=90)
    began = time.monotonic()
    with pytest.raises(Closed):
        client.receive()
    assert 58 < time.monotonic() - began < 66
    assert client.pings in (1, 2)
    assert wait_for(lambda: reopen(terminal)).status == 101


def test_viewers_that_do_not_read_cost_their_queue_and_no_more(execd):
    terminal = Terminal(execd, command="stty raw -echo; seq 1 2000000; echo done; exec sleep 100")
    holder = terminal.open()
    holder.until_out(b"\ndone\n", 60)
    before = execd.rss_kib()
    viewers = [WebSocket(execd.port, f"/pty/{terminal.id}/ws?mode=viewer", rcvbuf=4096)
               for _ in range(64)]
    assert {v.status for v in viewers} == {101}
    assert WebSocket(execd.port, f"/pty/{terminal.id}/ws?mode=viewer").status == 429
    assert execd.rss_kib() - before < 64 * 300 + QUARANTINE_KIB
    for viewer in viewers:
        viewer.close()
    late = wait_for(lambda: reopen(terminal, "?mode=viewer"))
    total = terminal.state()["output_offset"]
    assert late.order[-1] == "connected" and late.replays[0][0] == total - RING
    assert sum(len(data) for _, data in late.replays) == RING
