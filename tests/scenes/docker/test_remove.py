# SPDX-License-Identifier: Apache-2.0
"""deploy/install --remove takes what the lifecycle API made in Docker: only ours,
and only when no sandbox uses it."""
import json

import pytest
from test_z_install import ETC, World


@pytest.fixture
def world(node, tmp_path):
    """An installation that has the node's Docker daemon as its own, by a socket that no
    other layer of a file system is in front of."""
    docker, socket = node.docker, tmp_path / "docker.sock"
    docker.stop()
    options, docker.options = docker.options, [*docker.options, "--host", f"unix://{socket}"]
    docker.start()
    node.connected()
    (tmp_path / "world").mkdir()
    made = World(tmp_path / "world")
    made.socket = socket
    yield made
    made.end()
    docker.stop()
    docker.options = options
    docker.start()
    node.connected()  # makes the network anew


def taken(world):
    """What removing it says of Docker."""
    world.install()
    world.run("tee", f"{ETC}/sallyport.json", text=json.dumps(
        {"lifecycle": {"listen": "127.0.0.1:8080", "dockerSocket": str(world.socket),
                       "insecure": True}}))
    said = world.install("--remove", "--force").stdout
    return [line for line in said.splitlines() if "Docker" in line]


def made(node):
    """(networks, volumes) of ours."""
    def named(kind, name):
        return name in node.docker.cli(kind, "ls", "--format", "{{.Name}}").stdout.split()
    return named("network", "sallyport"), named("volume", "sallyport-kit")


def test_what_was_made_in_docker_goes(node, world):
    box = node.api.create()["id"]
    said = taken(world)
    assert said == ["Kept in Docker: the network sallyport and the volume sallyport-kit, "
                    "which 1 containers use"]
    assert made(node) == (True, True)
    # it goes on, and so does the next one
    assert node.docker.inside(box, "/opt/opensandbox/execd", "--version").returncode == 0
    node.api.delete(box)
    assert taken(world) == []
    assert made(node) == (False, False)
    # there is nothing to remove
    assert taken(world) == []
    # somebody else's
    node.docker.cli("network", "create", "sallyport")
    assert taken(world) == ["Kept in Docker: the network sallyport, which is not ours"]
    assert made(node) == (True, False)
    node.docker.cli("network", "rm", "sallyport")
    # a container of nobody's that has the volume
    node.docker.cli("create", "--name", "other", "--volume", "sallyport-kit:/k", "lab:1", "true")
    said = taken(world)
    assert len(said) == 1 and said[0].startswith("Kept in Docker: the volume sallyport-kit: "), said
    assert made(node) == (False, True)
    node.docker.cli("rm", "other")
    node.docker.cli("volume", "rm", "sallyport-kit")


def test_a_docker_that_does_not_answer_is_said(node, world):
    node.docker.process.terminate()
    node.docker.process.wait(30)
    world.run("sh", "-c", f"rm -f {world.socket}; python3 -c 'import socket; "
                          f"socket.socket(socket.AF_UNIX).bind(\"{world.socket}\")'")
    said = taken(world)
    assert len(said) == 1 and "does not answer" in said[0], said
    world.socket.unlink()
