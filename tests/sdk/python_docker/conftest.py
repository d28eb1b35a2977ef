# SPDX-License-Identifier: Apache-2.0
"""conftest.py - sandboxes of a whole node, from OPEN_SANDBOX_DOMAIN

    def test_x(make):
        sandbox = make(metadata={...})      SandboxSync.create; killed afterwards
"""
from datetime import timedelta

import opensandbox
import pytest
from opensandbox.config.connection_sync import ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException
from opensandbox.sync.manager import SandboxManagerSync
from opensandbox.sync.sandbox import SandboxSync

VERSION = tuple(int(n) for n in opensandbox.__version__.split(".")[:2])
IMAGE = "tests:local"


def newer(test):
    """For what the pinned SDK does not have."""
    return pytest.mark.skipif(VERSION < (1, 1), reason="this SDK does not have it")(test)


@pytest.fixture(scope="session")
def config():
    return ConnectionConfigSync(protocol="http")


@pytest.fixture(scope="session")
def manager(config):
    with SandboxManagerSync.create(config) as made:
        yield made


@pytest.fixture
def make(config):
    made = []

    def create(image=IMAGE, **wishes):
        sandbox = SandboxSync.create(
            image, connection_config=config, resource={"cpu": "500m", "memory": "256Mi"},
            **{"timeout": timedelta(minutes=10), **wishes})
        made.append(sandbox)
        return sandbox
    yield create
    for sandbox in made:
        try:
            sandbox.kill()
        except SandboxApiException as e:
            if e.status_code != 404:  # the test killed it
                raise
        sandbox.close()
