# SPDX-License-Identifier: Apache-2.0
"""The official SDKs, unmodified, against the whole node: its clients know nothing of
us but the address of the lifecycle API and its key.

tests/sdk/run installs each of them and runs its programs: those that also drive
the execution daemon alone, and those for what needs a node (tests/sdk/README.md
lists what each of them asserts). What they leave behind is looked at here.
"""
import os
import subprocess
import sys

import pytest
from client import KEY
from lab import BUILD, SOURCE

RUN = SOURCE / "tests/sdk/run"
SUITES = subprocess.run([sys.executable, RUN, "--list"], check=True, stdin=subprocess.DEVNULL,
                        capture_output=True, text=True).stdout.split()
SKIPPED = 77


def sdk(*command, env=None, timeout=1800):
    return subprocess.run([str(c) for c in command], timeout=timeout, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "SALLYPORT_BUILD": str(BUILD), **(env or {})})


def there_is(node):
    """Everything that making and removing sandboxes must leave as it was."""
    docker = node.docker
    images, volumes = (docker.cli(*words, "-q").stdout.split()
                       for words in (("images",), ("volume", "ls")))
    return (sorted(docker.containers()), sorted(node.registry()), node.policies(),
            sorted(images), sorted(volumes))


@pytest.mark.parametrize("suite", SUITES)
def test_sdk(node, suite):
    made = sdk(sys.executable, RUN, "--make", suite)
    if made.returncode == SKIPPED:
        pytest.skip(made.stdout.strip())
    assert made.returncode == 0, made.stdout + made.stderr
    node.clear()
    node.docker.cli("tag", "lab:1", "tests:local")
    node.api.delete(node.api.create()["id"])  # what the first one makes for all
    before, mark = there_is(node), len(node.lab.log())
    done = sdk("nsenter", f"--net=/run/netns/{node.lab.gw}", sys.executable, RUN, "--node", suite,
               env={"OPEN_SANDBOX_DOMAIN": f"127.0.0.1:{node.api.port}",
                    "OPEN_SANDBOX_API_KEY": KEY, "OPENSANDBOX_DISABLE_METRICS": "1",
                    "SALLYPORT_ORIGIN_LOG": str(node.lab.origin_log),
                    "SALLYPORT_SHARED": str(node.docker.folder / "shared")})
    print(done.stdout[-8000:], done.stderr[-2000:])
    assert done.returncode == 0, done.stdout[-8000:] + node.lab.log()[-2000:]
    assert there_is(node) == before
    assert node.api.call("GET", "/v1/sandboxes")[1]["items"] == []
    # neither the key, which some SDKs send everywhere, nor a credential
    assert KEY not in node.lab.log()[mark:] and "-of-the-lab" not in node.lab.log()[mark:]
