# SPDX-License-Identifier: Apache-2.0
"""The official Python SDK, unmodified, against the whole node: its clients know
nothing of us but the address of the lifecycle API.

The programs are those of tests/sdk: `python`, which also drives the execution
daemon alone, and `python_docker`, for what needs a node. tests/sdk/run installs
the SDK at its two versions.
"""
import os
import subprocess
import sys

import pytest
from lab import BUILD, SOURCE

SDK = SOURCE / "tests/sdk"
NO_IMAGE_HAS_NODE = "not test_javascript_and_bash"


@pytest.fixture(scope="module", params=["python-pinned", "python-new"])
def python(request):
    """An interpreter whose environment has the SDK."""
    made = subprocess.run([sys.executable, SDK / "run", "--make", request.param],
                          env={**os.environ, "SALLYPORT_BUILD": str(BUILD)}, timeout=600,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    return BUILD / "sdk" / request.param / "bin/python"


@pytest.mark.parametrize("programs", ["python", "python_docker"])
def test_sdk(node, python, programs):
    node.clear()
    node.docker.cli("tag", "lab:1", "tests:local")
    before = (sorted(node.docker.containers()), sorted(node.registry()), node.policies(),
              node.docker.cli("images", "-q").stdout)
    env = {**os.environ, "OPEN_SANDBOX_DOMAIN": f"127.0.0.1:{node.api.port}",
           "OPEN_SANDBOX_API_KEY": "lab-key", "SALLYPORT_ORIGIN_LOG": str(node.lab.origin_log)}
    done = subprocess.run(
        ["nsenter", f"--net=/run/netns/{node.lab.gw}", python, "-m", "pytest", "-q", "-ra",
         "-p", "no:cacheprovider", "-k", NO_IMAGE_HAS_NODE, SDK / programs],
        cwd=SDK, env=env, timeout=400, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    print(done.stdout[-6000:], done.stderr[-2000:])
    assert done.returncode == 0, done.stdout[-6000:] + node.lab.log()[-2000:]
    assert " passed" in done.stdout
    assert (sorted(node.docker.containers()), sorted(node.registry()), node.policies(),
            node.docker.cli("images", "-q").stdout) == before
    assert node.api.call("GET", "/v1/sandboxes")[1]["items"] == []
