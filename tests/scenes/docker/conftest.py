# SPDX-License-Identifier: Apache-2.0
"""conftest.py - one node with its Docker daemon for all of these scenes

    def test_x(node):
        id = node.api.create()["id"]
        node.docker.inside(id, "curl", ...)

SALLYPORT_DOCKER: a folder with another Docker than that of the machine (dockerd,
docker-proxy, docker-init, containerd, its shim, runc), which goes before PATH.
"""
import os
import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
if os.environ.get("SALLYPORT_DOCKER"):
    os.environ["PATH"] = f"{os.environ['SALLYPORT_DOCKER']}:{os.environ['PATH']}"
from node import open_node  # noqa: E402


def pytest_collection_modifyitems(items):
    if os.geteuid() != 0 or not shutil.which("dockerd"):
        for item in items:
            if item.path.is_relative_to(HERE):
                item.add_marker(pytest.mark.skip(reason="needs root and dockerd"))


@pytest.fixture(scope="session")
def node():
    # a layer that broke off is not asked for again, after ever longer pauses
    with open_node(docker_options=["--max-download-attempts=1"]) as opened:
        yield opened


@pytest.fixture(scope="module", autouse=True)
def a_clean_node(node):
    """What a test of another file left when it failed, fails none of these."""
    node.clear()
