# SPDX-License-Identifier: Apache-2.0
"""deploy/quickstart --docker: every check of it holds, and nothing is left of it.

It brings its own node, Docker daemon and image; of this scene it only gets an
environment that has the SDK."""
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lab import BUILD, SOURCE


@pytest.fixture(scope="module")
def sdk():
    made = subprocess.run([sys.executable, SOURCE / "tests/sdk/run", "--make", "python-new"],
                          env={**os.environ, "SALLYPORT_BUILD": str(BUILD)}, timeout=600,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    return BUILD / "sdk/python-new"


def processes(word):
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if word in line:
            found.append(line)
    return found


def remains():
    """What the demonstration would leave if it forgot something."""
    places = ("/var/tmp", "/run", "/tmp", "/sys/fs/cgroup", "/sys/fs/cgroup/memory")
    found = [str(p) for place in places for p in Path(place).glob("sallyport-demo.*")]
    found += [str(p) for p in Path("/run/netns").glob("sallyport-demo-*")]
    return found + processes("/sallyport-demo.")


def nothing_more_than(before):
    """Another one may run beside us, in the scenes of the demonstration itself:
    what is its own is gone with it."""
    end = time.monotonic() + 60
    while set(remains()) - set(before) and time.monotonic() < end:
        time.sleep(0.5)
    return not set(remains()) - set(before)


def quickstart(sdk, *, kill_after=None):
    p = subprocess.Popen([SOURCE / "deploy/quickstart", "--docker", "--no-build"], cwd=SOURCE,
                         env={**os.environ, "SALLYPORT_BUILD": str(BUILD),
                              "SALLYPORT_SDK": str(sdk)},
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True)
    text = ""
    for line in p.stdout:
        text += line
        if kill_after and kill_after in line:
            p.terminate()
            kill_after = None
    return p.wait(60), text


def test_every_check_holds_and_nothing_is_left(sdk):
    before = remains()
    status, text = quickstart(sdk)
    assert status == 0, text
    assert "WRONG" not in text
    held, checks = re.search(r"(\d+) of (\d+) checks held", text).groups()
    assert held == checks and int(checks) == text.count("  ok     ")
    assert int(checks) >= 15
    assert nothing_more_than(before)


def test_stopped_in_the_middle_it_leaves_nothing_either(sdk):
    before = remains()
    status, text = quickstart(sdk, kill_after="1. A sandbox made by the SDK")
    assert status != 0, text
    assert "checks held" not in text
    assert nothing_more_than(before)
