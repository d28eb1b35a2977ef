# SPDX-License-Identifier: Apache-2.0
"""test_b_sessions.py - shells that remember: what, of whom, and for how long"""
import time

import pytest

from execd import Run, pid_lives, wait_for


@pytest.fixture(params=["bash", "sh"])
def shell(request, start_execd):
    """A daemon in an image that has bash, and one that has only sh."""
    path = {"bash": "/bin/bash", "sh": "/bin/dash"}[request.param]
    return start_execd(env={"EXECD_SHELL": path, "FROM_START": "yes"})


def test_as_the_clients_use_it(shell):
    session = shell.session({"cwd": "/tmp"})
    assert shell.in_session(session, "pwd").stdout == ["/tmp"]
    assert shell.in_session(session, "pwd", cwd="/var").stdout == ["/var"]
    assert shell.in_session(session, "pwd").stdout == ["/tmp"]
    assert shell.in_session(session, "export E2E=ok").error is None
    assert shell.in_session(session, "echo $E2E $FROM_START").stdout == ["ok yes"]
    run = shell.in_session(session, "sh -c 'echo fail >&2; exit 7'")
    assert (run.stdout, run.stderr) == (["fail"], [])
    assert (run.error["ename"], run.error["evalue"]) == ("CommandExecError", "7")
    reply = shell.request("DELETE", f"/session/{session}")
    assert (reply.status, reply.body, reply.headers["content-length"]) == (200, b"", "0")
    assert shell.request("DELETE", f"/session/{session}").status == 404
    reply = shell.request("POST", f"/session/{session}/run", {"command": "true"})
    assert reply.status == 500 and reply.json()["code"] == "RUNTIME_ERROR"


def test_without_a_body(execd):
    for body in (None, b"", {}, {"cwd": None}, {"cwd": ""}):
        assert execd.in_session(execd.session(body), "echo x").stdout == ["x"]
    assert execd.request("POST", "/session", {"cwd": 5}).status == 400


def test_the_directory_is_remembered(shell, tmp_path):
    odd = tmp_path / "a 'b' \"c\" $d\n\\e "
    odd.mkdir()
    (tmp_path / "link").symlink_to(odd)
    session = shell.session({"cwd": str(tmp_path)})
    shell.in_session(session, "cd a*")
    assert "\n".join(shell.in_session(session, "pwd").stdout) == str(odd)
    shell.in_session(session, f"cd {tmp_path}/link")
    assert shell.in_session(session, "pwd").stdout == [f"{tmp_path}/link"]
    # of a run alone, unless the run goes elsewhere; relative to the session's
    assert shell.in_session(session, "pwd", cwd="..").stdout == [str(tmp_path)]
    assert shell.in_session(session, "pwd").stdout == [f"{tmp_path}/link"]
    shell.in_session(session, "cd /usr", cwd="/var")
    assert shell.in_session(session, "pwd").stdout == ["/usr"]


def test_any_bytes_are_remembered(shell):
    session = shell.session()
    value = "".join(f"\\{c:03o}" for c in range(1, 256))
    shell.in_session(session, f"A=$(printf '{value}.'); export A; export B=\"'\\\"\\$x\n\n\"")
    run = shell.in_session(session, "printf %s \"$A\" | od -An -v -tu1; printf '[%s]' \"$B\"")
    found = [int(n) for line in run.stdout[:-3] for n in line.split() if n.isdigit()]
    assert found[:256] == [*range(1, 256), ord(".")]
    assert run.stdout[-3:] == ["['\"$x", "\n", "]"]


def test_what_was_unset_stays_unset(shell):
    session = shell.session()
    shell.in_session(session, "unset FROM_START; export EMPTY=")
    run = shell.in_session(session, 'echo "${FROM_START-gone} [${EMPTY-gone}]"; env | grep -c FROM_')
    assert run.stdout == ["gone []", "0"]


def test_exit_and_errexit_lose_nothing(shell):
    session = shell.session()
    assert shell.in_session(session, "export A=1; cd /var; exit 5").exit_code == 5
    assert shell.in_session(session, "set -eu; export B=2; false; export C=3").exit_code == 1
    assert shell.in_session(session, "trap 'echo bye' EXIT; export D=4").stdout == ["bye"]
    assert shell.in_session(session, 'pwd; echo "$A$B${C-}$D"').stdout == ["/var", "124"]
    # what was set for one shell is not set for the next
    assert shell.in_session(session, "false; echo on").stdout == ["on"]


def test_our_own_lines_are_not_seen(shell):
    session = shell.session()
    run = shell.in_session(session, "set -x; :")
    assert [line for line in run.stdout if not line.endswith(" :")] == []
    run = shell.in_session(session, "nonsense-x")
    assert len(run.stdout) == 1 and "1:" in run.stdout[0].replace("line ", "")
    assert shell.in_session(session, "echo $# [$1] [$*]").stdout == ["0 [] []"]


def test_functions_are_remembered_by_bash(execd):
    session = execd.session()
    execd.in_session(session, "f() { echo \"f '$1'\"; }; export -f f; export() { :; }")
    assert execd.in_session(session, "f 'a b'; bash -c 'f c'").stdout == ["f 'a b'", "f 'c'"]
    execd.in_session(session, "unset -f f")
    assert execd.in_session(session, "f").exit_code == 127


def test_names_a_shell_cannot_have_go_past_it(start_execd):
    execd = start_execd(env={"dotted.name": "kept"})
    session = execd.session()
    for _ in range(2):
        assert execd.in_session(session, "env | grep '^dotted'").stdout == ["dotted.name=kept"]


def test_sessions_are_strangers(execd):
    a, b = execd.session(), execd.session()
    execd.in_session(a, "export A=1; cd /var")
    assert execd.in_session(b, 'echo "[$A]"; pwd').stdout == ["[]", execd.run("pwd").stdout[0]]


def test_a_killed_run_changes_nothing(shell):
    session = shell.session({"cwd": "/var"})
    shell.in_session(session, "export A=1")
    assert shell.in_session(session, "export A=2; cd /; kill -9 $$").exit_code == 137
    assert shell.in_session(session, "export A=3; sleep 60", timeout=200).exit_code == 124
    assert shell.in_session(session, "exec echo replaced").stdout == ["replaced"]
    assert shell.in_session(session, "echo $A; pwd").stdout == ["1", "/var"]


def test_runs_may_overlap(execd):
    session = execd.session()
    slow = execd.stream(f"/session/{session}/run", {"command": "sleep 1; export A=slow"})
    slow.until("ping")
    begin = time.monotonic()
    execd.in_session(session, "export A=fast")
    assert time.monotonic() - begin < 0.9
    assert Run(slow).error is None
    assert execd.in_session(session, "echo $A").stdout == ["slow"]


def test_a_run_is_a_command(execd):
    session = execd.session()
    stream = execd.stream(f"/session/{session}/run", {"command": "sleep 60"})
    run = stream.until("init")[0]["text"]
    assert execd.status(run)["content"] == "sleep 60"
    assert execd.request("DELETE", f"/command?id={run}").status == 200
    assert Run(stream).error["evalue"] == "143"


def test_delete_ends_what_runs(execd, tmp_path):
    session = execd.session()
    stream = execd.stream(f"/session/{session}/run",
                          {"command": f"echo $$ > {tmp_path}/pid; echo ready; sleep 60"})
    stream.until("stdout")
    assert execd.request("DELETE", f"/session/{session}").status == 200
    assert Run(stream).error["evalue"] == "137"
    wait_for(lambda: not pid_lives(int((tmp_path / "pid").read_text())))


def test_a_directory_that_went_away(shell, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    session = shell.session({"cwd": str(gone)})
    shell.in_session(session, "export A=1")
    gone.rmdir()
    reply = shell.request("POST", f"/session/{session}/run", {"command": "echo $A"})
    assert reply.status == 400 and str(gone) in reply.json()["message"]
    assert shell.in_session(session, "echo $A; cd /", cwd="/").stdout == ["1"]
    shell.in_session(session, "cd /usr", cwd="/var")
    assert shell.in_session(session, "pwd").stdout == ["/usr"]


def test_a_large_environment(execd):
    session = execd.session()
    execd.in_session(session, "for i in 1 2 3 4 5; do export A$i=$(head -c 100000 /dev/zero | "
                              "tr '\\0' $i); done")
    assert execd.in_session(session, "echo ${#A1} ${#A5}").stdout == ["100000 100000"]
    run = execd.in_session(session, "for i in 6 7 8 9; do export A$i=\"$(printf '%100000s' .)\"; done")
    assert run.error is None and "not remembered" in run.stderr[0]
    assert execd.in_session(session, "echo ${#A5} ${#A6}").stdout == ["100000 0"]


def test_long_commands_in_a_session(shell):
    session = shell.session()
    text = "\u20ac" * 200_000
    run = shell.in_session(session, f"export X=1; x='{text}'; printf %s \"$x\" | wc -c")
    assert run.stdout == ["600000"]
    assert shell.in_session(session, "echo $X").stdout == ["1"]
