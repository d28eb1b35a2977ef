# SPDX-License-Identifier: Apache-2.0
"""conftest.py - one lab for all scenes of a run; each scene gets clean audit"""
import contextlib
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from lab import Lab, ORIGIN4, ORIGIN6, OTHER4  # noqa: E402

HERE = Path(__file__).parent
NAMES = ("api", "plain", "other", "evil", "pinned", "deep.sub", "free", "git", "rebind",
         "limited", "big", "short")
SECRET = "sk-lab-4f9c2d7be1a04c55-secret-value"


def pytest_collection_modifyitems(items):
    if os.geteuid() != 0 or not shutil.which("nft"):
        for item in items:
            item.add_marker(pytest.mark.skip(reason="scenes need root and nft"))


def names_file(lab, **more):
    zone = {f"{n}.lab.test": {"A": [ORIGIN4], "AAAA": [ORIGIN6]} for n in NAMES}
    zone["evil.lab.test"] = {"A": [OTHER4]}
    zone["big.lab.test"] = {"A": [ORIGIN4], "truncate": True}
    zone["short.lab.test"] = {"A": [ORIGIN4], "ttl": 0}
    zone.update(more)
    path = lab.tmp / "zone.json"
    path.write_text(json.dumps(zone))
    return path


def start_origin(lab):
    certs = {n + ".lab.test": [str(p) for p in lab.leaf(n, n + ".lab.test")] for n in NAMES}
    certs[""] = [str(p) for p in lab.leaf("default", "default.lab.test", ORIGIN4, ORIGIN6)]
    config = lab.tmp / "origin.json"
    lab.origin_log = lab.tmp / "origin.log"
    config.write_text(json.dumps({"certs": certs, "log": str(lab.origin_log)}))
    lab.in_origin("/usr/bin/python3", HERE / "dnsd.py", ORIGIN4, names_file(lab))
    lab.in_origin("/usr/bin/python3", HERE / "origin.py", config,
                  f"{ORIGIN4},{ORIGIN6},{OTHER4}",
                  stdout=open(lab.tmp / "origin.ready", "wb"))
    lab.wait(lambda: (lab.tmp / "origin.ready").read_text().strip(), 10, "the origin")


POLICY = {
    "name": "lab", "sandboxes": {"ids": ["sandbox-*"]}, "defaultAction": "deny",
    "egress": [
        {"action": "allow", "target": "api.lab.test"},
        {"action": "allow", "target": "plain.lab.test"},
        {"action": "allow", "target": "pinned.lab.test"},
        {"action": "allow", "target": "*.sub.lab.test"},
        {"action": "allow", "target": "evil.lab.test"},
        {"action": "allow", "target": "git.lab.test"},
        {"action": "allow", "target": "big.lab.test"},
        {"action": "allow", "target": "short.lab.test"},
        {"action": "allow", "target": "limited.lab.test", "methods": ["GET"], "paths": ["/ok/*"]},
    ],
}


@contextlib.contextmanager
def open_lab(tag="", config=None, prepare=None):
    """A lab with its origin, daemon, sandboxes, policy, credential and binding.

    prepare(lab) runs before the daemon is configured and started."""
    lab = Lab(tag=tag, config=config)
    try:
        lab.up()
        lab.pki()
        start_origin(lab)
        lab.usual_policy = POLICY
        if prepare:
            prepare(lab)
        lab.configure(pins={
            name + ".lab.test": [ORIGIN4, ORIGIN6]
            for name in ("api", "plain", "pinned", "deep.sub", "git", "limited", "big", "short")
        } | {"evil.lab.test": [OTHER4], "two.lab.test": ["10.212.2.5"],
             "grpc.lab.test": ["10.212.2.6"], "ws.lab.test": ["10.212.2.7"]})
        lab.start()
        for s in lab.sandboxes:
            lab.register(s, team="lab")
        lab.put_policy("lab", lab.usual_policy)
        lab.credential("api-token", SECRET)
        lab.binding({"name": "api", "match": {"hosts": ["api.lab.test"]},
                     "auth": {"type": "bearer", "credential": "api-token"}})
        yield lab
        assert lab.stop() == 0, lab.log()
    finally:
        lab.down()


@pytest.fixture(autouse=True)
def only_new_records():
    """A test sees no record of what another one did."""
    for lab in Lab.all:
        lab.mark()


@pytest.fixture(scope="session")
def lab():
    with open_lab() as lab:
        yield lab


@pytest.fixture
def sandbox(lab):
    return lab.sandboxes[0]


@pytest.fixture
def neighbour(lab):
    return lab.sandboxes[1]


@pytest.fixture
def origin_seen(lab):
    """What the origin received since the test began, as a function."""
    start = lab.origin_log.stat().st_size if lab.origin_log.exists() else 0

    def seen(**match):
        if not lab.origin_log.exists():
            return []
        with open(lab.origin_log) as log:
            log.seek(start)
            records = [json.loads(line) for line in log]
        return [r for r in records if all(r.get(k) == v for k, v in match.items())]
    return seen
