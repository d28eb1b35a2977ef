# SPDX-License-Identifier: Apache-2.0
"""deploy/container: the node as a container, with exactly what compose.yaml lets it have.

The image is made of this machine's own programs and the build, not by the Dockerfile,
which needs a registry; what the Dockerfile installs, tests/lint/packages.py looks at.
SALLYPORT_NODE_IMAGE names an archive (`docker save`) of an image of that to use instead.
"""
import http.client
import os
import resource
import tempfile
from pathlib import Path

import image
import pytest
import yaml
from client import Api
from daemon import Docker
from lab import BUILD, SOURCE, Lab, run
from node import PORT, ground

RECIPE = SOURCE / "deploy/container"
NAME = "the-node"
KEY = "a-key-of-the-container-0123"
SECRET = "a-secret-that-only-the-origin-sees"
PROGRAMS = ("nft", "iptables-nft", "ip6tables-nft", "kill")
# linux/capability.h
CAPABILITIES = {"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "KILL": 5, "SETGID": 6, "SETUID": 7,
                "SETPCAP": 8, "NET_BIND_SERVICE": 10, "NET_ADMIN": 12}


def service():
    return yaml.safe_load((RECIPE / "compose.yaml").read_text())["services"]["sallyport"]


def may_set(name, value):
    """A machine that is confined itself cannot raise its own limits."""
    hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[1]
    return hard == resource.RLIM_INFINITY or 0 <= value <= hard


def options(places):
    """What `docker run` is told, from the file; places: which folder is meant by a path."""
    s = service()
    words = ["--network", s["network_mode"], "--pid", s["pid"],
             "--stop-timeout", s["stop_grace_period"].rstrip("s")]
    words += ["--read-only"] * s["read_only"]
    words += [w for c in s["cap_drop"] for w in ("--cap-drop", c)]
    words += [w for c in s["cap_add"] for w in ("--cap-add", c)]
    words += [w for o in s["security_opt"] for w in ("--security-opt", o)]
    words += [w for k, v in s["ulimits"].items() if may_set(k, v)
              for w in ("--ulimit", f"{k}={v}")]
    for volume in s["volumes"]:
        path, rest = volume.split(":", 1)
        words += ["--volume", f"{places[path]}:{rest}"]
    return words


def make_image(out, root):
    """The installed tree, and of this machine what the group run would install."""
    run(SOURCE / "deploy/install", "--build", BUILD, "--root", root, "--prefix", "/usr", cwd=SOURCE)
    tree = image.machine((*image.PROGRAMS, "kill"))
    for name in ("nft", "iptables-nft", "ip6tables-nft"):
        tree.add(image.which(name), f"usr/sbin/{name}")
        tree.need(image.which(name))
    for module in Path("/usr/lib/x86_64-linux-gnu/xtables").iterdir():
        tree.add(module)
        tree.need(module)
    for program in (root / "usr/sbin").iterdir():
        tree.add(program, f"usr/sbin/{program.name}")
        tree.need(program)
    tree.links["usr/bin/sallyport"] = "../sbin/sallyport"
    accounts = image.FILES
    image.FILES = accounts | {
        "etc/passwd": accounts["etc/passwd"] + "sallyport:x:989:989::/:/bin/false\n",
        "etc/group": accounts["etc/group"] + "sallyport:x:989:\n"}
    try:
        image.make(out, tree)
    finally:
        image.FILES = accounts


class Contained:
    def __init__(self, lab, docker, places):
        self.lab, self.docker, self.places = lab, docker, places
        self.api = Api(lab, PORT, KEY)

    def say(self):
        return self.docker.cli("logs", NAME, check=False).stderr

    def ready(self):
        # over the socket first: an exec in a container that ends hangs in Docker
        assert self.docker.inspect(NAME)["State"]["Running"], self.say()
        try:
            if not self.lab.admin.get("/v1/status")["ready"]:
                return False
        except (OSError, http.client.HTTPException):
            return False
        return not self.docker.cli("exec", NAME, "/usr/bin/sallyport", "status", "--ready",
                                   check=False).returncode

    def start(self):
        self.docker.cli("run", "--detach", "--name", NAME, "--entrypoint", "/usr/sbin/sallyportd",
                        *options(self.places), "node:1")
        self.wait()

    def wait(self):
        self.lab.wait(lambda: self.ready() and "sandboxes are made of" in self.say(), 30,
                      f"the container to serve: {self.say()}")

    def inject(self, box):
        r = self.docker.inside(box, "curl", "-sS", "-m", "15", "-o", "/dev/null", "-w",
                               "%{http_code}", "https://api.lab.test/contained")
        return r.stdout, SECRET in self.lab.origin_log.read_text()


@pytest.fixture(scope="module")
def contained():
    lab = Lab(sandboxes=0, tag="c")
    folder = Path(tempfile.mkdtemp(prefix="spc-", dir="/var/tmp"))
    docker = Docker(lab, folder)
    etc = lab.tmp / "etc"
    places = {"/etc/sallyport": etc, "/run/sallyport": lab.run_dir,
              "/var/lib/sallyport": lab.state, "/var/log/sallyport": lab.tmp / "log",
              "/var/run/docker.sock": docker.socket}
    try:
        lab.up()
        lab.pki()
        ground().start_origin(lab)
        docker.start()
        image.make(folder / "image.tar")
        docker.has_image(folder / "image.tar")
        if built := os.environ.get("SALLYPORT_NODE_IMAGE"):
            loaded = docker.cli("load", "-q", "-i", built, timeout=200).stdout.split()[-1]
            docker.cli("tag", loaded, "node:1")
        else:
            make_image(folder / "node.tar", folder / "root")
            docker.cli("import", folder / "node.tar", "node:1")
        for place in (etc / "policies", lab.run_dir, lab.state, lab.tmp / "log"):
            place.mkdir(parents=True)
        for name, data in (("vault.key", os.urandom(32)), ("api.key", KEY.encode())):
            (etc / name).write_bytes(data)
            (etc / name).chmod(0o600)
        (etc / "origin-ca.pem").write_bytes(lab.origin_ca.read_bytes())
        config = yaml.safe_load((RECIPE / "sallyport.yaml").read_text()) | {
            "pins": {"api.lab.test": ["10.212.2.2"]},
            "upstream": {"trustFiles": ["/etc/sallyport/origin-ca.pem"]}}
        (etc / "sallyport.json").write_text(yaml.safe_dump(config))
        made = Contained(lab, docker, places)
        made.start()
        yield made
    finally:
        docker.down()
        lab.down()


def status(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def roles(contained):
    """Name of the program to its /proc/PID/status."""
    first = contained.docker.inspect(NAME)["State"]["Pid"]
    found = {"sallyportd": status(first)}
    for child in Path(f"/proc/{first}/task/{first}/children").read_text().split():
        found[os.path.basename(os.readlink(f"/proc/{child}/exe"))] = status(child)
    return found


def test_it_has_what_the_file_says_and_the_roles_have_less(contained):
    found = roles(contained)
    assert set(found) == {"sallyportd", "sallyport-gateway", "sallyport-vault",
                          "sallyport-control", "sallyport-queue"}
    assert int(found["sallyportd"]["CapBnd"], 16) == sum(
        1 << CAPABILITIES[c] for c in service()["cap_add"])
    assert found["sallyportd"]["NoNewPrivs"] == "1" and found["sallyportd"]["Seccomp"] == "2"
    for name, held in found.items():
        if name != "sallyportd":
            assert held["Uid"].split() == ["989"] * 4, name
            queue = 1 << CAPABILITIES["NET_ADMIN"] if name == "sallyport-queue" else 0
            assert int(held["CapPrm"], 16) == queue, name


@pytest.fixture(scope="module")
def box(contained):
    contained.lab.credential("api-token", SECRET)
    contained.lab.binding({"name": "api", "match": {"hosts": ["api.lab.test"]},
                           "auth": {"type": "bearer", "credential": "api-token"}})
    made = contained.api.create(networkPolicy={"defaultAction": "deny", "egress": [
        {"action": "allow", "target": "api.lab.test"}]})["id"]
    yield made
    contained.api.delete(made)


def test_a_sandbox_with_a_credential(contained, box):
    assert contained.inject(box) == ("200", True)
    r = contained.docker.inside(box, "curl", "-sS", "-m", "5", "http://other.lab.test/")
    assert r.returncode == 6


def test_another_container_takes_over(contained, box):
    """An upgrade: the old one is stopped and removed, one with the same volumes started."""
    assert contained.docker.cli("stop", NAME).stdout
    assert contained.docker.inspect(NAME)["State"]["ExitCode"] == 0, contained.say()
    r = contained.docker.inside(box, "curl", "-sS", "-m", "2", "--resolve",
                                "api.lab.test:80:10.212.2.2", "http://api.lab.test/between")
    assert r.returncode != 0
    assert "/between" not in contained.lab.origin_log.read_text()
    contained.docker.cli("rm", NAME)
    contained.start()
    assert contained.api.get(box)["status"]["state"] == "Running"
    assert contained.inject(box) == ("200", True)


def test_the_rules_go_when_they_are_told_to(contained, box):
    def tables():
        return run("ip", "netns", "exec", contained.lab.gw, "nft", "list", "tables").stdout

    contained.docker.cli("stop", NAME)
    assert "sallyport" in tables()
    text = (RECIPE / "README.md").read_text()
    words = text[text.index("docker run --rm"):].split("\n\n")[0].replace("\\\n", " ").split()
    words = [w.replace("/etc/sallyport:", f"{contained.places['/etc/sallyport']}:", 1)
             for w in words[1:]]
    at = words.index("sallyport")
    contained.docker.cli(*words[:at], "--entrypoint", "/usr/sbin/sallyportd", "node:1",
                         *words[at + 1:])
    assert tables() == ""
    contained.docker.cli("start", NAME)
    contained.lab.wait(contained.ready, 30, "the container to serve again")


def test_compose_itself_takes_the_file():
    r = run("docker-compose", "-f", RECIPE / "compose.yaml", "config", check=False)
    assert r.returncode == 0, r.stderr
    assert set(yaml.safe_load(r.stdout)["services"]["sallyport"]["cap_add"]) == set(CAPABILITIES)
