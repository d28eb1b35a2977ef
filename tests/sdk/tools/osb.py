# SPDX-License-Identifier: Apache-2.0
"""osb.py - the official command line, as its user types it"""
import json
import os
import subprocess
import sys
from pathlib import Path

OSB = Path(sys.executable).parent / "osb"


def osb(*args, ok=True, **env):
    done = subprocess.run([OSB, "--no-color", *args], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, check=False,
                          env={**os.environ, "OPEN_SANDBOX_PROTOCOL": "http", **env})
    assert (done.returncode == 0) == ok, (args, done.returncode, done.stdout, done.stderr)
    return done.stdout if ok else done.stdout + done.stderr


def told(*args):
    """What it says in JSON."""
    return json.loads(osb(*args, "-o", "json"))
