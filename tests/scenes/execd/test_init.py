# SPDX-License-Identifier: Apache-2.0
"""The daemon as a container's first process: zombies, signals, status, kill -9"""
import os
import pty
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from box import EXECD, Box, free_port, wait_for

INIT = ("--pid", "--mount-proc", "--kill-child")


def init_box(*program, **more):
    return Box("--init", "--", *program, unshare=INIT, **more)


def status_of(*program, **more):
    """Of a container whose program ends by itself; and what was written."""
    with init_box(*program, ready=False, **more) as b:
        status = b.process.wait(20)
        return status, b.text()


def below(pid):
    """Pids of the process namespace whose first process is pid."""
    ns = os.readlink(f"/proc/{pid}/ns/pid")
    found = []
    for p in Path("/proc").iterdir():
        try:
            if p.name.isdigit() and os.readlink(p / "ns/pid") == ns:
                found.append(int(p.name))
        except OSError:
            continue
    return found


def state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


@pytest.mark.parametrize("program,status", [
    (["true"], 0),
    (["sh", "-c", "exit 7"], 7),
    (["sh", "-c", "exit 255"], 255),
    (["sh", "-c", "kill -TERM $$"], 143),
    (["sh", "-c", "kill -KILL $$"], 137),
    (["-c", "false || ", "exit 5"], 5),
])
def test_its_status_is_the_containers(program, status):
    assert status_of(*program)[0] == status


@pytest.mark.parametrize("program,status,sentence", [
    ("/no/such/program", 127, "No such file or directory"),
    ("no-such-program", 127, "No such file or directory"),
    ("/etc/passwd", 126, "Permission denied"),
    ("/etc", 126, "Permission denied"),
])
def test_a_program_that_cannot_be_run_is_named(program, status, sentence):
    got, text = status_of(program)
    assert got == status
    assert f'"{program}" could not be run: {sentence}' in text


def test_bootstrap_cmd_goes_before_the_words():
    status, text = status_of("echo", "never", env={"BOOTSTRAP_CMD": "echo first && exit 9"})
    assert status == 9 and "first" in text and "never" not in text


def test_the_api_answers_meanwhile_and_commands_run_beside():
    with init_box("sleep", "60") as b:
        frames = b.events("POST", "/command", {"command": "echo $PPID"})
        assert [f["text"] for f in frames if f["type"] == "stdout"] == ["1"]


ORPHANS = """
import os, sys, time
for i in range(1000):
    pid = os.fork()
    if not pid:
        if not os.fork():
            os._exit(i % 200)
        os._exit(0)
    os.waitpid(pid, 0)
print("all born", flush=True)
time.sleep(60)
"""


def test_every_zombie_is_reaped(tmp_path):
    """1,000 orphans that end by themselves, and none of them stays."""
    with init_box("python3", "-c", ORPHANS, tmp=tmp_path) as b:
        wait_for(lambda: "all born" in b.text(), 60)
        wait_for(lambda: len(below(b.pid)) == 2, 5)


def test_a_fork_bomb_of_orphans_leaves_the_api_responsive(tmp_path):
    script = "while :; do (sleep 0.01 &) ; done"
    with init_box("sh", "-c", script, tmp=tmp_path) as b:
        slowest = 0
        for _ in range(50):
            begin = time.monotonic()
            assert b.get("/ping")[0] == 200
            slowest = max(slowest, time.monotonic() - begin)
        assert slowest < 1.5


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "WINCH"])
def test_signals_are_forwarded(name, tmp_path):
    program = ["sh", "-c", f"trap 'echo got {name}; exit 3' {name}; echo ready; "
               "while :; do sleep 0.02; done"]
    with init_box(*program, tmp=tmp_path) as b:
        wait_for(lambda: "ready" in b.text())
        assert b.end(getattr(signal, "SIG" + name)) == 3
        assert f"got {name}" in b.text()


def test_a_program_without_handlers_ends_by_term():
    """As process 1 it would not; behind us it does."""
    with init_box("sleep", "60") as b:
        begin = time.monotonic()
        assert b.end(signal.SIGTERM) == 143
        assert time.monotonic() - begin < 1


def test_what_is_left_gets_term_and_a_moment(tmp_path):
    script = ("setsid sh -c \"trap 'sleep 0.5; echo cleaned; exit' TERM; echo up; "
              "while :; do sleep 0.02; done\" & sleep 0.5; exit 4")
    with init_box("sh", "-c", script, tmp=tmp_path) as b:
        assert b.process.wait(20) == 4
        assert "cleaned" in b.text()


def test_what_does_not_want_to_end_is_killed(tmp_path):
    script = ("setsid sh -c \"trap '' TERM; echo up; while :; do sleep 1; done\" & "
              "sleep 0.5; exit 6")
    with init_box("sh", "-c", script, tmp=tmp_path) as b:
        begin = time.monotonic()
        assert b.process.wait(20) == 6
        assert 3 < time.monotonic() - begin < 6


def test_a_second_term_while_leaving_shortens_the_grace(tmp_path):
    script = ("setsid sh -c \"trap '' TERM; echo up; while :; do sleep 1; done\" & "
              "sleep 0.3; exit 6")
    with init_box("sh", "-c", script, tmp=tmp_path) as b:
        begin = time.monotonic()
        wait_for(lambda: "ended with status 6" in b.text())
        assert b.end(signal.SIGTERM) == 6
        assert time.monotonic() - begin < 2


def test_kill_9_from_inside_does_nothing():
    with init_box("sh", "-c", "kill -9 1; kill -STOP 1; sleep 0.3; exit 8", ready=False) as b:
        assert b.process.wait(20) == 8


def test_kill_9_from_outside_leaves_nobody():
    with init_box("sh", "-c", "setsid sleep 61.7 & sleep 61.7") as b:
        pids = wait_for(lambda: len(below(b.pid)) >= 3 and below(b.pid))
        b.end(signal.SIGKILL)

        def all_gone():
            return all(state(p) in "ZX" for p in pids)
        wait_for(all_gone, 5)


def test_commands_of_clients_end_with_the_container():
    with init_box("sleep", "1.5") as b:
        b.events("POST", "/command", {"command": "trap '' HUP; sleep 61.9", "background": True})
        pids = below(b.pid)
        assert b.process.wait(20) == 0
        assert not any(Path(f"/proc/{p}").exists() for p in pids)


def test_descriptors_and_directory_are_the_containers(tmp_path):
    program = ["sh", "-c", "pwd; readlink /proc/self/fd/0; ls /proc/self/fd | tr '\\n' ' '"]
    with init_box(*program, cwd=tmp_path, tmp=tmp_path, ready=False) as b:
        assert b.process.wait(20) == 0
        text = b.text()
    assert str(tmp_path) in text and "/dev/null" in text
    assert "\n0 1 2 3 " in text


def test_the_environment_has_what_the_container_needs_and_no_token(tmp_path):
    env = {"EXECD_ACCESS_TOKEN": "api-secret", "JUPYTER_TOKEN": "jupyter-secret",
           "EXECD_ENVS": "/nowhere", "PLAIN": "1"}
    with Box("--init", "--", "env", unshare=INIT, env=env, tmp=tmp_path, ready=False) as b:
        assert b.process.wait(20) == 0
        text = b.text()
    assert "api-secret" not in text and "EXECD_ACCESS_TOKEN" not in text
    for line in ("JUPYTER_TOKEN=jupyter-secret", "EXECD_ENVS=/nowhere", "PLAIN=1"):
        assert line in text


def test_the_environment_names_the_file_that_clients_append_to(tmp_path):
    with init_box("env", tmp=tmp_path, ready=False) as b:
        assert b.process.wait(20) == 0
        assert "EXECD_ENVS=/opt/opensandbox/.env" in b.text().splitlines()


def test_signals_are_not_blocked_or_ignored_in_it(tmp_path):
    with init_box("grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status", tmp=tmp_path,
                  ready=False) as b:
        assert b.process.wait(20) == 0
        assert re.findall(r"Sig(?:Blk|Ign):\s*(\d+)", b.text()) == ["0" * 16] * 2


def test_the_terminal_is_the_programs(tmp_path):
    """As with docker run -t: its group is in front, Ctrl-C reaches it."""
    port = free_port()
    pid, master = pty.fork()
    if not pid:
        os.execvp("unshare", ["unshare", "--fork", *INIT, str(EXECD), "--listen", f"127.0.0.1:{port}",
                              "--init", "--", "sh", "-c",
                              "trap 'echo interrupted; exit 12' INT; echo up; read line; "
                              "echo line=$line; while :; do sleep 0.02; done"])
    seen = b""

    def more_until(word):
        nonlocal seen
        end = time.monotonic() + 10
        while word not in seen:
            assert time.monotonic() < end, seen
            seen += os.read(master, 4096)
    try:
        more_until(b"up")
        os.write(master, b"hello\n")
        more_until(b"line=hello")
        os.write(master, b"\x03")
        more_until(b"interrupted")
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 12
        pid = 0
    finally:
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(master)


# -- the pre-script ---------------------------------------------------------

def test_the_pre_script_exports_to_everybody(tmp_path):
    script = tmp_path / "pre.sh"
    script.write_text("export FROM_SCRIPT='two words'\ncd /usr\n")
    with Box("--init", "--", "sh", "-c", "echo $FROM_SCRIPT in $PWD; sleep 60", unshare=INIT,
             env={"EXECD_BOOTSTRAP_PRE_SCRIPT": str(script)}, tmp=tmp_path) as b:
        wait_for(lambda: "two words in /usr" in b.text())
        frames = b.events("POST", "/command", {"command": "echo $FROM_SCRIPT"})
        assert [f["text"] for f in frames if f["type"] == "stdout"] == ["two words"]
        assert Path(f"/proc/{b.pid}/comm").read_text().startswith("sallyport-exec")


def test_a_pre_script_that_fails_ends_the_container(tmp_path):
    script = tmp_path / "pre.sh"
    script.write_text("false\n")
    status, _ = status_of("true", env={"EXECD_BOOTSTRAP_PRE_SCRIPT": str(script)})
    assert status == 1


def test_a_pre_script_that_is_missing_is_told(tmp_path):
    status, text = status_of("true", env={"EXECD_BOOTSTRAP_PRE_SCRIPT": "/no/script"})
    assert status == 0 and "/no/script was not sourced" in text


def test_the_token_survives_the_pre_script(tmp_path):
    script = tmp_path / "pre.sh"
    script.write_text("export X=1\n")
    with Box("--init", "--", "sleep", "60", unshare=INIT, ready=False,
             env={"EXECD_BOOTSTRAP_PRE_SCRIPT": str(script), "EXECD_ACCESS_TOKEN": "t0k"}) as b:
        def answer():
            try:
                return b.ask("GET", "/ping", headers={"X-EXECD-ACCESS-TOKEN": "t0k"})[0]
            except OSError:
                return None
        assert wait_for(answer) == 200
        assert b.get("/ping")[0] == 401


# -- not process 1 ------------------------------------------------------------

def test_without_a_namespace_orphans_are_ours_too(tmp_path):
    with Box("--init", "--", "sh", "-c", "(sleep 0.4; echo orphan $PPID >&2) & exec sleep 1",
             tmp=tmp_path) as b:
        children = Path(f"/proc/{b.pid}/task/{b.pid}/children")
        assert b.process.wait(20) == 0
        assert not children.exists()


def test_without_a_program_it_runs_until_term():
    with Box("--init", unshare=INIT) as b:
        assert b.get("/ping")[0] == 200
        assert b.end(signal.SIGTERM) == 0


def test_it_is_ready_at_once():
    """Of ten starts of a container the median is well below 50 ms, unshare's own
    time included."""
    times = []
    for _ in range(10):
        begin = time.monotonic()
        with init_box("sleep", "60") as b:
            times.append(time.monotonic() - begin)
            assert b.pid
    assert sorted(times)[5] < 0.5


def test_help_is_not_started():
    text = subprocess.run([str(EXECD), "--help"], capture_output=True, text=True, check=True)
    assert "--ca-file" in text.stdout
