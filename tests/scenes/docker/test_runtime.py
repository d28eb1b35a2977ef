# SPDX-License-Identifier: Apache-2.0
"""Another runtime for the containers: one that Docker has is used, without one
that it has not nothing is made. The node is another one meanwhile."""
import json

import pytest


@pytest.fixture
def runtime(node):
    """Docker knows "runsc": a program that notes that it was run, then is runc."""
    lab, docker = node.lab, node.docker
    before = dict(lab.extra_config["lifecycle"])
    noted = docker.folder / "runsc.log"
    wrapper = docker.folder / "runsc"
    wrapper.write_text(f'#!/bin/sh\necho "$*" >> {noted}\nexec runc "$@"\n')
    wrapper.chmod(0o755)

    def use(name):
        assert lab.stop() == 0
        lab.extra_config["lifecycle"] = before | {"runtime": name}
        lab.configure()
        lab.start()

    docker.stop()
    options, docker.options = docker.options, [*docker.options, "--add-runtime",
                                               f"runsc={wrapper}"]
    docker.start()
    yield use, noted
    use("")
    docker.stop()
    docker.options = options
    docker.start()
    node.connected()


def refused(node):
    status, value = node.api.call("POST", "/v1/sandboxes", {
        "image": {"uri": "lab:1"}, "entrypoint": ["true"], "resourceLimits": {}})
    return status == 503 and "no runtime" in value["message"] and value


def test_runtimes(node, runtime):
    use, noted = runtime
    use("runsc")
    node.connected()
    box = node.api.create()["id"]
    assert node.docker.inspect(f"sandbox-{box}")["HostConfig"]["Runtime"] == "runsc"
    assert "create" in noted.read_text()
    node.api.delete(box)
    assert node.remains(box) == []
    use("kata-lab")
    value = node.lab.wait(lambda: refused(node), 20, "a refusal")
    assert value["code"] == "DOCKER::INITIALIZATION_ERROR"
    assert 'no runtime "kata-lab"' in value["message"], json.dumps(value)
    assert '"runsc"' in value["message"]
    assert 'no sandboxes can be made: the Docker daemon has no runtime "kata-lab"' in \
        node.lab.log()
