# SPDX-License-Identifier: Apache-2.0
"""Commands and sessions through the official Python SDK"""
import threading
import time
from datetime import datetime, timedelta, timezone

import pytest
from conftest import newer
from opensandbox.exceptions import SandboxApiException, SandboxException
from opensandbox.models.execd import RunCommandOpts
from opensandbox.models.execd_sync import ExecutionHandlersSync


def texts(messages):
    return [m.text for m in messages]


def test_run(sandbox):
    seen = {"init": [], "out": [], "complete": [], "error": []}
    handlers = ExecutionHandlersSync(
        on_init=lambda e: seen["init"].append(e.id),
        on_stdout=lambda m: seen["out"].append(m.text),
        on_execution_complete=lambda e: seen["complete"].append(e),
        on_error=lambda e: seen["error"].append(e))
    done = sandbox.commands.run("echo hello; pwd", opts=RunCommandOpts(working_directory="/tmp"),
                                handlers=handlers)
    assert texts(done.logs.stdout) == ["hello", "/tmp"] == seen["out"]
    assert done.id and seen["init"] == [done.id]
    assert len(seen["complete"]) == 1 and not seen["error"] and done.error is None
    age = time.time() * 1000 - done.logs.stdout[0].timestamp
    assert -1000 < age < 60_000


def test_stderr_and_exit_code(sandbox):
    done = sandbox.commands.run("echo oops >&2; exit 7")
    assert texts(done.logs.stderr) == ["oops"]
    assert done.error.name == "CommandExecError" and done.error.value == "7"
    assert getattr(done, "exit_code", 7) == 7
    assert getattr(done, "complete", None) is None


def test_lines_that_break_line_readers(sandbox):
    done = sandbox.commands.run(r"printf 'a\x0bb\x0cc\x1cd\xc2\x85e\xe2\x80\xa8f\xe2\x80\xa9g\n'")
    assert texts(done.logs.stdout) == ["a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g"]


def test_empty_lines(sandbox):
    done = sandbox.commands.run(r"printf 'a\n\nb\n\n\nc\n'")
    assert texts(done.logs.stdout) == ["a", "\n", "b", "\n", "\n", "c"]


def test_bytes_that_are_not_text(sandbox):
    done = sandbox.commands.run(r"printf '\xff\xfe ok\n\0x\n'")
    assert texts(done.logs.stdout) == ["\ufffd\ufffd ok", "\0x"]


def test_environment(sandbox):
    done = sandbox.commands.run("echo $GREETING", opts=RunCommandOpts(envs={"GREETING": "a b'c"}))
    assert texts(done.logs.stdout) == ["a b'c"]


def test_user(sandbox):
    done = sandbox.commands.run("id -u; id -g", opts=RunCommandOpts(uid=65534, gid=65534))
    assert texts(done.logs.stdout) == ["65534", "65534"]


def test_gid_without_uid(sandbox):
    with pytest.raises((SandboxApiException, SandboxException, ValueError)):
        sandbox.commands.run("id", opts=RunCommandOpts(gid=5))


def test_timeout(sandbox):
    begun = time.monotonic()
    done = sandbox.commands.run("sleep 30", opts=RunCommandOpts(timeout=timedelta(seconds=1)))
    assert time.monotonic() - begun < 10
    assert done.error is not None


def test_no_such_folder(sandbox):
    with pytest.raises(SandboxApiException) as caught:
        sandbox.commands.run("true", opts=RunCommandOpts(working_directory="/no/such/folder"))
    assert caught.value.status_code == 400


def test_background(sandbox):
    done = sandbox.commands.run(
        "for i in 1 2 3; do echo line $i; sleep 0.2; done; exit 3",
        opts=RunCommandOpts(background=True))
    status = sandbox.commands.get_command_status(done.id)
    assert status.running and status.exit_code is None
    logs, cursor = "", None
    for _ in range(100):
        part = sandbox.commands.get_background_command_logs(done.id, cursor)
        logs, cursor = logs + part.content, part.cursor
        status = sandbox.commands.get_command_status(done.id)
        if not status.running:
            break
        time.sleep(0.05)
    logs += sandbox.commands.get_background_command_logs(done.id, cursor).content
    assert logs == "line 1\nline 2\nline 3\n"
    assert status.exit_code == 3 and "line $i" in status.content
    assert abs((datetime.now(timezone.utc) - status.started_at).total_seconds()) < 60
    assert status.finished_at >= status.started_at


def test_interrupt(sandbox):
    begun, ids = time.monotonic(), []
    ready = threading.Event()

    def started(event):
        ids.append(event.id)
        ready.set()

    def interrupt():
        ready.wait(10)
        time.sleep(0.3)
        sandbox.commands.interrupt(ids[0])

    other = threading.Thread(target=interrupt)
    other.start()
    done = sandbox.commands.run("sleep 60", handlers=ExecutionHandlersSync(on_init=started))
    other.join()
    assert time.monotonic() - begun < 10 and done.error is not None


def test_session(sandbox, folder):
    session = sandbox.commands.create_session(working_directory=folder)
    run = sandbox.commands.run_in_session
    assert texts(run(session, "pwd").logs.stdout) == [folder]
    run(session, "export KEPT='a \"b\" $c\nd'; cd /tmp")
    assert texts(run(session, "echo \"$KEPT\"; pwd").logs.stdout) == ['a "b" $c', "d", "/tmp"]
    assert texts(run(session, "pwd", working_directory=folder).logs.stdout) == [folder]
    failed = run(session, "echo seen >&2; exit 4")
    assert failed.error.value == "4" and "seen" in texts(failed.logs.stdout)
    sandbox.commands.delete_session(session)
    with pytest.raises((SandboxApiException, SandboxException)):
        run(session, "pwd")


def test_echo_is_fast(sandbox):
    """The published figure of the original is 1.01 s; a bound, not a measurement."""
    sandbox.commands.run("echo warm")
    begun = time.monotonic()
    for _ in range(20):
        assert texts(sandbox.commands.run("echo hi").logs.stdout) == ["hi"]
    assert (time.monotonic() - begun) / 20 < 1.01 / 10


@newer
def test_argv(sandbox):
    done = sandbox.commands.run(["printf", "%s|", "a b", "$HOME", "*"])
    assert texts(done.logs.stdout) == ["a b|$HOME|*|"]


@newer
def test_set_env(sandbox):
    for value in ("plain", "two words", "it's", "$HOME", "back\\slash"):
        sandbox.commands.set_env("SDK_KEPT", value)
        if value != "$HOME":
            done = sandbox.commands.run("printf %s \"$SDK_KEPT\"")
            assert texts(done.logs.stdout) == [value]
