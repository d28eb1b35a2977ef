# SPDX-License-Identifier: Apache-2.0
"""node.py - a node whose sandboxes are containers: lab, Docker, lifecycle API

    with open_node() as node:
        id = node.api.create()["id"]
        node.docker.inside(id, "curl", ...)
"""
import contextlib
import importlib.util
import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import image  # noqa: E402
from client import KEY, Api  # noqa: E402
from daemon import Docker  # noqa: E402
from lab import BIN, Lab  # noqa: E402

PORT, INGRESS = 8080, 8081
PULL_S = 10
ROUTE_KEYS = "# signs\nk=AAECAwQFBgcICQoLDA0ODw==\n"


def ground():
    """The conftest of all scenes, as a module."""
    spec = importlib.util.spec_from_file_location("scenes_ground", HERE.parent / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def private(path, text):
    """A file that its owner alone may read."""
    path.write_text(text)
    path.chmod(0o600)
    return path


class Node:
    """What a scene holds: lab, docker, api."""

    def __init__(self, lab, docker):
        self.lab, self.docker, self.api = lab, docker, Api(lab, PORT)

    def registry(self):
        return {s["id"]: s for s in self.lab.admin.get("/v1/sandboxes")["sandboxes"]}

    def policies(self):
        return {p["name"] for p in self.lab.admin.get("/v1/policies")["policies"]}

    def remains(self, sandbox):
        """Everything that is still there of a sandbox."""
        found = [c for c in self.docker.containers() if sandbox in c]
        found += [s for s in self.registry() if s == sandbox]
        found += [p for p in self.policies() if sandbox in p]
        return found

    def clear(self):
        for box in self.api.call("GET", "/v1/sandboxes?pageSize=100")[1]["items"]:
            self.api.delete(box["id"])

    def connected(self):
        """Sandboxes can be made: Docker was met."""
        self.lab.wait(lambda: "sandboxes are made of" in self.lab.log()[self.lab.log_mark:], 30,
                      "control to meet the Docker daemon")


@contextlib.contextmanager
def open_node(tag="d", docker_options=()):
    """From the namespaces to the first answer of the API, and back to nothing."""
    base = ground()
    lab = Lab(sandboxes=0, tag=tag, config={
        "lifecycle": {"listen": f"127.0.0.1:{PORT}", "defaultPolicy": "lab-default"},
        "ingress": {"listen": f"127.0.0.1:{INGRESS}"}})
    # the path of a socket is short, and the data is not for a memory disk
    folder = Path(tempfile.mkdtemp(prefix="spd-", dir="/var/tmp"))
    docker = Docker(lab, folder)
    docker.options += docker_options
    try:
        lab.up()
        lab.pki()
        base.start_origin(lab)
        docker.start()
        image.make(folder / "image.tar")
        docker.has_image(folder / "image.tar")
        lab.extra_config["lifecycle"] |= {
            # a sanitizer's execd is not static; the image has no such library
            "execd": os.environ.get("SALLYPORT_EXECD", str(BIN / "sallyport-execd")),
            "dockerSocket": str(docker.socket), "hostPaths": [str(folder / "shared")],
            "pullTimeoutS": PULL_S}
        (folder / "shared").mkdir()
        lab.extra_config["lifecycle"]["apiKeyFile"] = str(private(folder / "api.key", KEY + "\n"))
        lab.extra_config["ingress"]["keysFile"] = str(private(folder / "route.keys", ROUTE_KEYS))
        lab.extra_config["pins"] = {f"{n}.lab.test": ["10.212.2.2", "fd12:2::2"]
                                    for n in ("api", "plain", "git")}
        lab.configure()
        lab.start()
        node = Node(lab, docker)
        node.connected()
        yield node
        assert lab.stop() == 0, lab.log()
    finally:
        lab.down()
        docker.down()
