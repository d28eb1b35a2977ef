# SPDX-License-Identifier: Apache-2.0
"""deploy/install: a service is installed, upgraded and taken away again.

In mounts of its own: /etc, /usr/local and /var are overlays whose upper layer is
a memory disk of the scene, so this machine's own are only read, and what was
written can be listed. Without systemd: what that adds is a reload.
"""
import json
import os
import shutil
import stat
import subprocess
import time
from pathlib import Path

import pytest
from lab import BUILD, SOURCE

ETC, STATE = "/etc/sallyport", "/var/lib/sallyport"
WORLD = """
set -e
mount -t tmpfs tmpfs {place}
for d in /etc /usr/local /var; do
	n=$(echo $d | tr / _)
	mkdir -p {place}/$n.new {place}/$n.work
	mount -t overlay overlay -o lowerdir=$d,upperdir={place}/$n.new,workdir={place}/$n.work $d
done
mount -t tmpfs tmpfs /run
ip link set lo up
echo ready
exec sleep 600
"""


class World:
    def __init__(self, place):
        self.place = place
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--net", "sh", "-c", WORLD.format(place=place)],
            stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
        assert self.process.stdout.readline() == "ready\n"
        self.daemon = None

    def command(self, *words):
        pid = self.process.pid
        return ["nsenter", f"--mount=/proc/{pid}/ns/mnt", f"--net=/proc/{pid}/ns/net", "--",
                *map(str, words)]

    def run(self, *words, check=True, text=None):
        r = subprocess.run(self.command(*words), cwd=SOURCE, capture_output=True, text=True,
                           timeout=60, input=text or "", check=False)
        assert not check or r.returncode == 0, (words, r.stdout, r.stderr)
        return r

    def install(self, *words, check=True):
        return self.run(SOURCE / "deploy/install", "--build", BUILD, *words, check=check)

    def read(self, path):
        return self.run("cat", path).stdout

    def written(self, folder):
        """Files that are new in a folder; what was deleted is a device, and not one."""
        r = self.run("find", self.place / (folder.replace("/", "_") + ".new"), "(", "-type", "f",
                     "-o", "-type", "l", ")", "-printf", "%P\\n")
        return set(r.stdout.split())

    def start(self):
        self.daemon = subprocess.Popen(self.command("/usr/local/sbin/sallyportd"),
                                       stderr=subprocess.PIPE, text=True)
        for _ in range(100):
            if not self.run("/usr/local/bin/sallyport", "status", "--ready",
                            check=False).returncode:
                return
            assert self.daemon.poll() is None, self.daemon.stderr.read()
            time.sleep(0.1)
        raise AssertionError("no daemon after ten seconds")

    def stop(self):
        if self.daemon and self.daemon.poll() is None:
            self.daemon.terminate()
            self.daemon.communicate(timeout=30)
            assert self.daemon.returncode == 0

    def end(self):
        if self.daemon and self.daemon.poll() is None:
            self.daemon.kill()
            self.daemon.wait()
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    if os.geteuid() != 0 or not shutil.which("cmake"):
        pytest.skip("needs root and cmake")
    made = World(tmp_path_factory.mktemp("world"))
    yield made
    made.end()


def test_installed_it_starts(world):
    world.install()
    assert "sallyport" in world.read("/etc/passwd")
    key = world.run("stat", "-c", "%a %U %s", f"{ETC}/vault.key").stdout
    assert key == "600 root 32\n"
    assert json.loads(world.read(f"{ETC}/sallyport.json"))["user"] == "sallyport"
    files = world.written("/usr/local")
    for name in ("bin/sallyport", "sbin/sallyportd", "sbin/sallyport-execd",
                 "share/man/man8/sallyportd.8", "lib/sysusers.d/sallyport.conf",
                 "share/bash-completion/completions/sallyport",
                 "share/doc/sallyport/examples/lifecycle.yaml"):
        assert name in files
    unit = world.read("/usr/local/lib/systemd/system/sallyport.service")
    assert "ExecStart=/usr/local/sbin/sallyportd\n" in unit and "@SBIN" not in unit
    world.start()
    world.run("/usr/local/bin/sallyport", "vault", "put", "kept", text="a-value")
    owner = world.run("stat", "-c", "%U", STATE).stdout
    assert owner == "sallyport\n"


def test_an_upgrade_keeps_what_is_the_operators(world):
    before = world.run("sha256sum", f"{ETC}/vault.key").stdout
    config = json.loads(world.read(f"{ETC}/sallyport.json")) | {"logLevel": "warn"}
    world.run("tee", f"{ETC}/sallyport.json", text=json.dumps(config))
    # something that only the version before had
    world.run("sh", "-c", "echo /usr/local/sbin/sallyport-gone >>"
                          "/usr/local/share/sallyport/manifest; "
                          "touch /usr/local/sbin/sallyport-gone /usr/local/sbin/not-ours")
    world.install()
    assert world.run("sha256sum", f"{ETC}/vault.key").stdout == before
    assert json.loads(world.read(f"{ETC}/sallyport.json")) == config
    files = world.written("/usr/local")
    assert "sbin/sallyport-gone" not in files
    assert {"sbin/sallyportd", "sbin/not-ours"} <= files
    # the daemon of before runs on, and the next one has what it had
    ready = ("/usr/local/bin/sallyport", "status", "--ready")
    assert world.daemon.poll() is None and world.run(*ready).stdout == ""
    world.stop()
    assert world.run(*ready, check=False).returncode == 3
    world.start()
    assert "kept" in world.run("/usr/local/bin/sallyport", "vault", "list").stdout


def test_a_configuration_that_would_not_start_stops_an_upgrade(world):
    good = world.read(f"{ETC}/sallyport.json")
    before = world.run("stat", "-c", "%i %Z", "/usr/local/sbin/sallyportd").stdout
    world.run("tee", f"{ETC}/sallyport.json", text='{"noSuchWord": 1}')
    r = world.install(check=False)
    assert r.returncode == 1 and "noSuchWord" in r.stderr
    assert world.run("stat", "-c", "%i %Z", "/usr/local/sbin/sallyportd").stdout == before
    world.run("tee", f"{ETC}/sallyport.json", text=good)


def test_it_is_taken_away(world):
    world.run("/usr/local/bin/sallyport", "sandbox", "add", "one", "10.9.9.9")
    r = world.install("--remove", check=False)
    assert r.returncode == 1 and "found 1 sandboxes" in r.stderr
    assert "sbin/sallyportd" in world.written("/usr/local")
    world.stop()
    # the rules stand while the daemon does not run; now they go
    assert "sallyport" in world.run("nft", "list", "tables").stdout
    world.install("--remove", "--force")
    assert world.run("nft", "list", "tables").stdout == ""
    assert world.written("/usr/local") == {"sbin/not-ours"}
    assert {"sallyport/vault.key", "sallyport/sallyport.json"} <= world.written("/etc")
    assert "lib/sallyport/vault/data.mdb" in world.written("/var")


def test_with_purge_nothing_is_left(world):
    world.install()
    world.install("--remove", "--purge", "--force")
    for folder in ("/etc", "/var"):
        assert not [f for f in world.written(folder) if f.startswith(("sallyport/", "lib/sally",
                                                                      "log/sally"))]
    assert "sallyport" not in world.read("/etc/passwd")


def test_a_tree_of_files_touches_nothing_else(world, tmp_path):
    world.install("--root", tmp_path, "--prefix", "/usr")
    assert stat.S_IMODE((tmp_path / "usr/sbin/sallyportd").stat().st_mode) == 0o755
    assert (tmp_path / "usr/bin/sallyport").resolve() == tmp_path / "usr/sbin/sallyport"
    assert world.written("/usr/local") == {"sbin/not-ours"}
    assert not Path(tmp_path / "etc").exists()
    world.install("--remove", "--root", tmp_path, "--prefix", "/usr")
    assert [p for p in tmp_path.rglob("*") if not p.is_dir()] == []


@pytest.mark.parametrize("words", [["--prefix"], ["--prefix", "here"], ["--reset"],
                                   ["--build", "/nowhere"]])
def test_what_is_refused(world, words):
    r = world.run(SOURCE / "deploy/install", *words, check=False)
    assert r.returncode in (1, 2) and r.stderr.startswith("install: ")
    assert world.written("/usr/local") == {"sbin/not-ours"}
