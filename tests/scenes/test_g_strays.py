# SPDX-License-Identifier: Apache-2.0
"""What a Docker daemon that was killed forgets on the sandboxes' bridge is removed, and nothing else."""
import pytest
from conftest import open_lab
from lab import run

BRIDGE = "sp-docker0"


@pytest.fixture(scope="module")
def lab():
    with open_lab("gy", config={"lifecycle": {"listen": "127.0.0.1:8082", "insecure": True,
                                              "dockerSocket": "/nonexistent/docker.sock"}}) as lab:
        yield lab


def devices(lab):
    return {line.split()[0].partition("@")[0]
            for line in run("ip", "-n", lab.gw, "-br", "link").stdout.splitlines()}


def test_ports_that_lead_nowhere_go(lab):
    def pair(port, master, peer, ns=None):
        run("ip", "-n", lab.gw, "link", "add", port, "type", "veth", "peer", "name", peer, *(["netns", ns] if ns else []))
        run("ip", "-n", lab.gw, "link", "set", port, "master", master, "up")
    for bridge in (BRIDGE, "sp-mine"):
        run("ip", "-n", lab.gw, "link", "add", bridge, "type", "bridge")
    pair("veth0123abc", BRIDGE, "vethfedcba9")  # its other end went nowhere
    pair("veth0123abd", BRIDGE, "c0", lab.sandboxes[0].ns)  # a container's
    pair("veth0123abe", "sp-mine", "vethfedcba8")  # another bridge
    pair("vethmine", BRIDGE, "vethmine2")  # by an operator's hand
    before = devices(lab)
    lab.wait(lambda: "veth0123abc" not in devices(lab), 100, "the port to go")
    assert devices(lab) == before - {"veth0123abc", "vethfedcba9"}
    lab.wait(lambda: "removed veth0123abc, a port of sp-docker0 that leads nowhere" in lab.log(), 2, "a word of it")
    assert lab.log().count("that leads nowhere") == 1
