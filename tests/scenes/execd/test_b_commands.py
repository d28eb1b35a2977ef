# SPDX-License-Identifier: Apache-2.0
"""test_b_commands.py - every sentence of the contract about commands"""
import grp
import json
import os
import pwd
import re
import time

import pytest

from execd import Run, pid_lives, wait_for

# memory of the daemon under a sanitizer says little
ASAN = "asan" in os.environ.get("SALLYPORT_BUILD", "")
ID = re.compile(r"^[0-9a-f]{32}$")


def frames(run):
    """The raw frames of a run, each with its ids and times taken out."""
    text = re.sub(r'"timestamp":\d+', '"timestamp":T', run.raw.decode())
    text = re.sub(r'"execution_time":\d+', '"execution_time":E', text)
    return text.replace(run.id, "ID").split("\n\n")


# -- the stream ---------------------------------------------------------------

def test_the_stream_is_as_the_contract_has_it(execd):
    run = execd.run("echo hi; sleep 0.05; echo no >&2")
    assert run.headers["content-type"] == "text/event-stream"
    assert run.headers["cache-control"] == "no-cache"
    assert run.headers["connection"] == "keep-alive"
    assert run.headers["x-accel-buffering"] == "no"
    assert run.headers["transfer-encoding"] == "chunked"
    assert ID.match(run.id)
    assert frames(run) == [
        '{"type":"init","text":"ID","timestamp":T}',
        '{"type":"ping","text":"pong","timestamp":T}',
        '{"type":"stdout","text":"hi","timestamp":T}',
        '{"type":"stderr","text":"no","timestamp":T}',
        '{"type":"execution_complete","execution_time":E,"timestamp":T}',
        ""]
    now = time.time() * 1000
    assert all(abs(now - e["timestamp"]) < 60_000 for e in run.events)


def test_blank_lines(execd):
    run = execd.run(r"printf 'a\n\nb\n\n\nc\n'")
    assert run.stdout == ["a", "\n", "b", "\n", "\n", "c"]


@pytest.mark.parametrize("output, texts", [
    (r"a\r\nb\r\n", ["a", "b"]),
    (r"10%%\r20%%\r\n", ["10%", "20%"]),
    (r"no end", ["no end"]),
    (r"\n", ["\n"]),
    (r"", []),
    (r"h\303\251\342\202\254\n", ["h\u00e9\u20ac"]),
    (r"\377\376x\000\033[0m\n", ["\ufffd\ufffdx\0\x1b[0m"]),
    (r"\342\200\250|\302\205\n", ["\u2028|\u0085"]),
])
def test_lines_and_bytes(execd, output, texts):
    run = execd.run(f"printf '{output}'")
    assert run.stdout == texts
    for frame in run.raw.decode().split("\n\n"):
        # nothing on which a reader of lines may break
        assert len(frame.splitlines()) <= 1


@pytest.mark.parametrize("command, code, trace", [
    ("exit 3", "3", "exit status 3"),
    ("no-such-program-here", "127", "exit status 127"),
    ("kill -9 $$", "137", "signal 9 (SIGKILL)"),
    ("kill -TERM $$", "143", "signal 15 (SIGTERM)"),
    ("exit 256; true", None, None),
])
def test_how_the_end_is_told(execd, command, code, trace):
    run = execd.run(command)
    assert [e["type"] for e in run.events[-1:]] == [e["type"] for e in run.terminal]
    status = execd.status(run.id)
    if code is None:
        assert run.error is None and status["exit_code"] == 0 and "error" not in status
        return
    assert run.error == {"ename": "CommandExecError", "evalue": code, "traceback": [trace]}
    assert (status["exit_code"], status["error"]) == (int(code), trace)


def test_the_stream_ends_with_its_last_event(execd):
    stream = execd.command("echo x")
    stream.until("execution_complete")
    begin = time.monotonic()
    assert list(stream) == [] and stream.ended
    assert time.monotonic() - begin < 0.7  # upstream's waits a second
    # and the connection serves the next one
    stream.connection.send("GET", "/ping")
    assert stream.connection.head()[0] == 200


def test_pings_come_every_three_seconds(execd):
    run = execd.run("sleep 6.5")
    times = [e["timestamp"] for e in run.events if e["type"] == "ping"]
    assert len(times) == 3
    for a, b in zip(times, times[1:]):
        assert 2900 < b - a < 3500


def test_output_comes_when_it_is_written(execd):
    stream = execd.command("echo one; sleep 1; echo two")
    begin = time.monotonic()
    stream.until("stdout")
    assert time.monotonic() - begin < 0.7
    assert Run(stream).stdout == ["two"]


# -- what a client may ask for ------------------------------------------------

def test_cwd_and_envs(execd, tmp_path):
    inner = tmp_path / "a b"
    inner.mkdir()
    run = execd.run('pwd; printf "%s\n" "$A" "$B"', cwd=str(inner),
                    envs={"A": "x\ny 'q' \"d\" $HOME", "B": ""})
    assert run.stdout == [str(inner), "x", "y 'q' \"d\" $HOME", "\n"]
    run = execd.run('pwd; echo "[${A-unset}]"', cwd="$A/..", envs={"A": str(inner)})
    assert run.stdout == [str(tmp_path), f"[{inner}]"]


def test_the_daemons_own_settings_are_not_told(start_execd, tmp_path):
    extra = tmp_path / "envs"
    extra.write_text("# more\nFROM_FILE=1\nexport QUOTED='a b'\nPATHS=$OURS:x\nCALL=file\n")
    execd = start_execd(token="hidden", env={"EXECD_ENVS": str(extra), "OURS": "o",
                                             "JUPYTER_TOKEN": "hidden"})
    run = execd.run("env", envs={"CALL": "call"})
    found = dict(line.split("=", 1) for line in run.stdout if "=" in line)
    assert (found["FROM_FILE"], found["QUOTED"], found["PATHS"], found["CALL"]) == (
        "1", "a b", "o:x", "call")
    assert [k for k in found if k.startswith(("EXECD_", "JUPYTER_"))] == ["EXECD_ENVS"]
    assert "hidden" not in run.raw.decode()
    extra.write_text("FROM_FILE=2\n")
    assert execd.run("echo $FROM_FILE").stdout == ["2"]


def test_argv_needs_no_shell(execd):
    run = execd.run(None, argv=["printf", "%s|", "a b", "$HOME", "*", ""])
    assert run.stdout == ["a b|$HOME|*||"]
    status = execd.request("GET", "/command/status/" + run.id).json()
    assert status["content"].startswith("printf %s| a b")
    missing = execd.request("POST", "/command", {"argv": ["no-such-program-at-all"]})
    assert missing.status == 500 and "no-such-program-at-all" in missing.json()["message"]


def test_uid_and_gid(execd):
    if os.geteuid():
        pytest.skip("needs root")
    assert execd.run("id -u; id -g", uid=12345, gid=54321).stdout == ["12345", "54321"]
    assert execd.run("id -u; id -g; id -G", uid=12345).stdout == ["12345"] * 3
    # a user the image knows has its own groups
    user = next(u for u in pwd.getpwall() if u.pw_gid not in (0, u.pw_uid))
    groups = {user.pw_gid, *(g.gr_gid for g in grp.getgrall() if user.pw_name in g.gr_mem)}
    run = execd.run("id -g; id -G", uid=user.pw_uid)
    assert run.stdout[0] == str(user.pw_gid)
    assert {int(n) for n in run.stdout[1].split()} == groups
    # what it writes to is its own
    assert execd.run("echo out >/dev/stdout; echo err >/dev/stderr", uid=12345).stdout == ["out"]
    run = execd.run("echo hi > /root/x", uid=12345)
    assert run.exit_code and "ermission" in run.stderr[0]


def test_stdin_is_closed(execd):
    run = execd.run("cat; read x; echo status $?; ls -l /proc/self/fd | grep -c ' -> '")
    assert run.stdout[0] == "status 1"
    # 0, 1, 2 and the directory that ls reads: nothing of the daemon
    assert run.stdout[1] == "4"


def test_long_commands(execd):
    for size in (130_000, 131_071, 131_072, 500_000, 1_000_000):
        text = "\u20ac" * (size // 3)
        run = execd.run(f"x='{text}'; printf %s \"$x\" | wc -c; echo $# $0")
        assert run.stdout == [str(len(text.encode())), f"0 {execd.run('echo $0').stdout[0]}"]


def test_a_script_of_many_lines(execd):
    run = execd.run("cat <<'END'\n$not 'expanded'\nEND\nf() {\n  echo \"f $1\"\n}\nf 1\n# end")
    assert run.stdout == ["$not 'expanded'", "f 1"]


def test_more_than_a_program_can_have_is_said(execd):
    stream = execd.stream("/command", {"command": "true", "envs": {"A": "x" * 3_000_000}})
    assert stream.status == 500 and stream.error["code"] == "RUNTIME_ERROR"
    assert "Argument list too long" in stream.error["message"]
    assert execd.run("echo fine").stdout == ["fine"]


@pytest.mark.parametrize("body, word", [
    (b"", "empty"),
    (b"[]", "array"),
    (b"{", "line 1"),
    ({}, "command is absent"),
    ({"command": ""}, "command is empty"),
    ({"command": "a\0b"}, "NUL"),
    ({"command": 5}, "command is a number"),
    ({"command": "true", "gid": 5}, "gid without uid"),
    ({"command": "true", "cwd": "/no/such/place"}, "/no/such/place"),
    ({"command": "true", "cwd": "/etc/passwd"}, "Not a directory"),
    ({"command": "true", "timeout": -5}, "timeout is out of range"),
    ({"command": "true", "uid": 1 << 33}, "uid is out of range"),
    ({"command": "true", "envs": {"A=B": "c"}}, "envs"),
    ({"command": "true", "envs": {"A": 1}}, "a number"),
])
def test_what_is_refused(execd, body, word):
    reply = execd.request("POST", "/command", body)
    assert reply.status == 400
    assert reply.json()["code"] == "INVALID_REQUEST_BODY"
    assert word in reply.json()["message"] or word == "line 1", reply


# -- time ---------------------------------------------------------------------

def test_the_timeout_kills_the_group(execd, tmp_path):
    begin = time.monotonic()
    run = execd.run(f"sleep 60 & echo $! > {tmp_path}/pid; sleep 60; echo never", timeout=300)
    assert 0.25 < time.monotonic() - begin < 3
    assert run.error == {"ename": "CommandExecError", "evalue": "124",
                         "traceback": ["timed out after 300 ms"]}
    assert execd.status(run.id)["exit_code"] == 124
    child = int((tmp_path / "pid").read_text())
    wait_for(lambda: not pid_lives(child), 5, "what it started lives on")


def test_a_timeout_that_is_not_reached(execd):
    assert execd.run("echo x", timeout=60_000).error is None
    assert execd.run("echo x", timeout=0).error is None
    assert execd.run("echo x", timeout=None, uid=None, envs=None, cwd=None).error is None


# -- interrupt ----------------------------------------------------------------

def test_interrupt(execd):
    stream = execd.command("sleep 60")
    command = stream.until("ping")[0]["text"]
    assert execd.status(command)["running"] is True
    assert execd.status(command)["exit_code"] is None
    begin = time.monotonic()
    reply = execd.request("DELETE", f"/command?id={command}")
    assert (reply.status, reply.body, reply.headers["content-length"]) == (200, b"", "0")
    assert time.monotonic() - begin < 1
    assert execd.status(command)["running"] is False
    assert Run(stream).error["evalue"] == "143"
    reply = execd.request("DELETE", f"/command?id={command}")
    assert reply.status == 500 and reply.json()["code"] == "RUNTIME_ERROR"


def test_interrupt_of_who_does_not_listen(execd, tmp_path):
    stream = execd.command("trap '' TERM; echo ready; while :; do sleep 1; done")
    command = stream.until("stdout")[0]["text"]
    begin = time.monotonic()
    assert execd.request("DELETE", f"/command?id={command}").status == 200
    assert 2.5 < time.monotonic() - begin < 6
    assert Run(stream).error["evalue"] == "137"


def test_interrupt_reaches_what_outlives_the_leader(execd, tmp_path):
    stream = execd.command(
        f"(trap '' TERM; echo $BASHPID > {tmp_path}/pid; echo ready; "
        "while :; do sleep 1; done) & wait")
    command = stream.until("stdout")[0]["text"]
    child = int((tmp_path / "pid").read_text())
    assert execd.request("DELETE", f"/command?id={command}").status == 200
    assert Run(stream).error["evalue"] == "143"
    assert pid_lives(child)
    wait_for(lambda: not pid_lives(child), 6, "it outlived SIGKILL")


def test_interrupt_without_id(execd):
    for path in ("/command", "/command?id="):
        reply = execd.request("DELETE", path)
        assert reply.status == 400 and reply.json()["code"] == "MISSING_QUERY"
    reply = execd.request("DELETE", "/command?id=unknown")
    assert reply.status == 500 and reply.json()["code"] == "RUNTIME_ERROR"


# -- status -------------------------------------------------------------------

def test_status(execd):
    command = "echo 'x'; exit 4 # \u20ac"
    run = execd.run(command)
    status = execd.status(run.id)
    times = {k: status.pop(k) for k in ("started_at", "finished_at")}
    assert status == {"id": run.id, "content": command, "running": False, "exit_code": 4,
                      "error": "exit status 4"}
    for text in times.values():
        assert re.match(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$", text)
    reply = execd.request("GET", "/command/status/unknown")
    assert reply.status == 404 and set(reply.json()) == {"code", "message"}


# -- in the background --------------------------------------------------------

def test_background(execd):
    begin = time.monotonic()
    run = execd.run("echo one; sleep 1.5; echo two >&2; printf three", background=True)
    assert time.monotonic() - begin < 1
    assert [e["type"] for e in run.events] == ["init", "ping", "execution_complete"]
    assert execd.status(run.id)["running"] is True
    first = wait_for(lambda: (lambda r: r if r.body else None)(
        execd.request("GET", f"/command/{run.id}/logs")))
    assert first.headers["content-type"] == "text/plain; charset=utf-8"
    assert (first.body, first.headers["execd-commands-tail-cursor"]) == (b"one\n", "4")
    assert execd.wait_finished(run.id)["exit_code"] == 0
    rest = execd.request("GET", f"/command/{run.id}/logs?cursor=4")
    assert (rest.body, rest.headers["execd-commands-tail-cursor"]) == (b"two\nthree", "13")
    for cursor in ("13", "99"):
        last = execd.request("GET", f"/command/{run.id}/logs?cursor={cursor}")
        assert (last.body, last.headers["execd-commands-tail-cursor"]) == (b"", "13")
        assert last.headers["content-length"] == "0"
    whole = execd.request("GET", f"/command/{run.id}/logs")
    assert whole.body == b"one\ntwo\nthree"


def test_background_failure_timeout_interrupt(execd):
    failed = execd.run("exit 9", background=True).id
    assert execd.wait_finished(failed)["exit_code"] == 9
    slow = execd.run("sleep 60", background=True, timeout=200).id
    assert execd.wait_finished(slow)["exit_code"] == 124
    ended = execd.run("sleep 60", background=True).id
    assert execd.request("DELETE", f"/command?id={ended}").status == 200
    assert execd.status(ended)["exit_code"] == 143


def test_logs_of_what_has_none(execd):
    run = execd.run("true")
    for command in (run.id, "unknown"):
        reply = execd.request("GET", f"/command/{command}/logs")
        assert reply.status == 400 and set(reply.json()) == {"code", "message"}
    background = execd.run("true", background=True).id
    for cursor in ("-1", "x", "1.5"):
        reply = execd.request("GET", f"/command/{background}/logs?cursor={cursor}")
        assert reply.status == 400 and cursor in reply.json()["message"]


def test_a_character_is_not_torn_while_it_grows(execd, tmp_path):
    run = execd.run(f"printf 'a\\342\\202'; touch {tmp_path}/half; "
                    f"while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; printf '\\254'",
                    background=True)
    wait_for((tmp_path / "half").exists)
    reply = execd.request("GET", f"/command/{run.id}/logs")
    assert (reply.body, reply.headers["execd-commands-tail-cursor"]) == (b"a", "1")
    (tmp_path / "go").touch()
    execd.wait_finished(run.id)
    reply = execd.request("GET", f"/command/{run.id}/logs?cursor=1")
    assert reply.text == "\u20ac"


def test_a_long_log_is_sent_in_flat_memory(execd):
    size = 200 << 20
    run = execd.run(f"head -c {size} /dev/zero | tr '\\0' y", background=True)
    execd.wait_finished(run.id, 60)
    before = execd.rss_kib()
    connection = execd.connect()
    connection.send("GET", f"/command/{run.id}/logs?cursor=5")
    status, headers = connection.head()
    assert (status, int(headers["content-length"])) == (200, size - 5)
    assert headers["execd-commands-tail-cursor"] == str(size)
    left, most = size - 5 - len(connection.held), before
    while left:
        got = len(connection.sock.recv(1 << 20))
        assert got
        left -= got
        most = max(most, execd.rss_kib())
    assert most - before < ((64 << 10) if ASAN else 4096)
    connection.close()


def test_only_so_many_are_remembered(start_execd):
    execd = start_execd(env={"EXECD_SHELL": "/bin/dash"})
    first = execd.run("true").id
    for _ in range(1024):
        execd.run("true")
    assert execd.request("GET", f"/command/status/{first}").status == 404
    # long texts are remembered for less long
    long = execd.run("true #" + "x" * 900_000).id
    for _ in range(9):
        execd.run("true #" + "x" * 900_000)
    assert execd.request("GET", f"/command/status/{long}").status == 404


def test_the_reply_is_json_of_any_text(execd):
    text = 'echo "\\u2028" \x7f \ud83d\ude00'.encode("utf-16", "surrogatepass").decode("utf-16")
    run = execd.run(text)
    assert json.loads(execd.request("GET", f"/command/status/{run.id}").body)["content"] == text
