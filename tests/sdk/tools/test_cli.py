# SPDX-License-Identifier: Apache-2.0
"""The official command line, as its user types it"""
import json

import pytest
from osb import osb


@pytest.fixture(scope="module")
def box():
    made = json.loads(osb("sandbox", "create", "--image", "tests:local", "-t", "10m", "-o", "json"))
    yield made["id"]
    osb("sandbox", "kill", made["id"])


def test_run(box):
    assert "hello 42" in osb("command", "run", box, "-o", "raw", "--", "sh", "-c",
                             "echo hello $((6*7))")


def test_run_fails(box):
    osb("command", "run", box, "-o", "raw", "--", "sh", "-c", "exit 3", ok=False)


def test_background(box):
    made = json.loads(osb("command", "run", box, "--background", "-o", "json", "--",
                          "echo", "from", "behind"))
    assert "from behind" in osb("command", "logs", box, made["execution_id"], "-o", "raw")
    status = json.loads(osb("command", "status", box, made["execution_id"], "-o", "json"))
    assert status["running"] is False and status["exit_code"] == 0


def test_files(box, tmp_path):
    (tmp_path / "up").write_bytes(bytes(range(256)) * 1000)
    folder = f"/tmp/osb-{box}"
    osb("file", "mkdir", box, folder)
    osb("file", "upload", box, str(tmp_path / "up"), folder + "/bin")
    osb("file", "download", box, folder + "/bin", str(tmp_path / "down"))
    assert (tmp_path / "down").read_bytes() == (tmp_path / "up").read_bytes()
    osb("file", "write", box, folder + "/t", "-c", "one two")
    osb("file", "replace", box, folder + "/t", "--old", "one", "--new", "1")
    assert osb("file", "cat", box, folder + "/t", "-o", "raw").strip() == "1 two"
    osb("file", "mv", box, folder + "/t", folder + "/u")
    assert folder + "/u" in osb("file", "search", box, folder, "--pattern", "u", "-o", "json")
    osb("file", "rm", box, folder + "/u")
    osb("file", "rmdir", box, folder)
    osb("file", "info", box, folder, ok=False)


def test_session(box):
    made = json.loads(osb("command", "session", "create", box, "-o", "json"))
    session = made["session_id"]
    osb("command", "session", "run", box, session, "-o", "raw", "--", "export", "A=kept")
    assert "kept" in osb("command", "session", "run", box, session, "-o", "raw", "--", "printenv", "A")
    osb("command", "session", "delete", box, session)
