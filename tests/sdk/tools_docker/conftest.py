# SPDX-License-Identifier: Apache-2.0
"""conftest.py - what the programs for a whole node share with those beside them"""
import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

API, PLAIN = "api.lab.test", "plain.lab.test"


def received(path):
    """The headers, as a dict of lower-case names, of every request for a path
    that the origin behind api.lab.test and plain.lab.test noted."""
    with open(os.environ["SALLYPORT_ORIGIN_LOG"], encoding="utf-8") as log:
        records = [json.loads(line) for line in log]
    return [{k.lower(): v for k, v in r["headers"]} for r in records if r["path"] == path]


def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return found
