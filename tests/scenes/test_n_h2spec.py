# SPDX-License-Identifier: Apache-2.0
"""h2spec against the side that sandboxes see, through the whole gateway."""
import os
import shutil
import subprocess
import xml.etree.ElementTree as ET

import pytest
from h2_lab import HOST, ask, peer  # noqa: F401

MODULE = "github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible"


@pytest.fixture(scope="session")
def h2spec(tmp_path_factory):
    """Built by the Go toolchain, where there is one and it can fetch the module."""
    if shutil.which("h2spec"):
        return shutil.which("h2spec")
    if not shutil.which("go"):
        pytest.skip("h2spec is built with go, which is not here")
    base = tmp_path_factory.mktemp("h2spec")
    env = dict(os.environ, GOBIN=str(base), GOPATH=str(base / "go"), GOCACHE=str(base / "cache"),
               GOFLAGS="-modcacherw")
    r = subprocess.run(["go", "install", MODULE], env=env, cwd=base, capture_output=True, text=True,
                       timeout=400)
    if r.returncode:
        pytest.skip(f"h2spec cannot be had: {r.stderr.strip().splitlines()[-1]}")
    return str(base / "h2spec")


def cases(report):
    """Section and title of each case, and what it said when it failed."""
    for suite in ET.parse(report).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            failure = case.find("failure")
            failure = case.find("error") if failure is None else failure
            yield f"{case.get('package')} {case.get('classname')}", failure


@pytest.mark.parametrize("group", ["generic", "http2", "hpack"])
def test_h2spec(peer, h2spec, tmp_path, group):
    report = tmp_path / "report.xml"
    r = peer.sandboxes[0].run(h2spec, group, "-h", HOST, "-p", "443", "-t", "-k", "--strict", "-o",
                              "3", "-P", "/slow/0.1", "-j", report, timeout=500)
    found = list(cases(report))
    assert len(found) >= {"generic": 44, "http2": 90, "hpack": 7}[group], r.stdout
    assert not [case for case, failure in found if failure is not None], r.stdout[-4000:]
    assert ask(peer.sandboxes[1])[0] == "200" and peer.admin.get("/v1/status")["ready"]
