# SPDX-License-Identifier: Apache-2.0
"""conftest.py - one sandbox for all tests of an SDK, from OPEN_SANDBOX_DOMAIN"""
from datetime import timedelta

import opensandbox
import pytest
from opensandbox.config.connection_sync import ConnectionConfigSync
from opensandbox.sync.sandbox import SandboxSync

VERSION = tuple(int(n) for n in opensandbox.__version__.split(".")[:2])


def newer(test):
    """For what the pinned SDK does not have."""
    return pytest.mark.skipif(VERSION < (1, 1), reason="this SDK does not have it")(test)


@pytest.fixture(scope="session")
def sandbox():
    made = SandboxSync.create(
        "tests:local", timeout=timedelta(minutes=20), resource={"cpu": "1", "memory": "1Gi"},
        connection_config=ConnectionConfigSync(protocol="http"))
    yield made
    made.kill()
    made.close()


@pytest.fixture
def folder(sandbox):
    done = sandbox.commands.run("mktemp -d")
    path = done.logs.stdout[0].text
    yield path
    sandbox.commands.run(f"rm -rf '{path}'")
