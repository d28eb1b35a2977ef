# SPDX-License-Identifier: Apache-2.0
"""conftest.py - the execution daemon for a scene

    def test_x(execd): ...                       the daemon as it comes
    def test_y(start_execd):                     with options, any number of them
        d = start_execd(token="t", env={"A": "1"}, init=True, words=["sleep", "9"])
"""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from execd import BINARY, Execd  # noqa: E402


@pytest.fixture
def start_execd(tmp_path):
    assert BINARY.exists(), f"{BINARY} is not there; SALLYPORT_BUILD names the build"
    started = []

    def start(**options):
        daemon = Execd(tmp_path, **options)
        started.append(daemon)
        return daemon

    yield start
    failed = []
    for daemon in started:
        try:
            daemon.stop()
        except AssertionError as e:
            failed.append(str(e))
    assert not failed, "\n".join(failed)


@pytest.fixture
def execd(start_execd):
    return start_execd()
