# SPDX-License-Identifier: Apache-2.0
"""daemon.py - a Docker daemon of the scene's own

In the namespace of the lab's node, with folders, socket and pid file of its own;
no other daemon of this machine is touched or noticed. Stopped by the pid that
was started.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from lab import run

IMAGE = "lab:1"


class Docker:
    def __init__(self, lab, folder):
        self.lab, self.folder = lab, Path(folder)
        self.socket = self.folder / "docker.sock"
        self.process, self.options = None, []

    # ip netns exec would hide the cgroups, which it mounts /sys over
    def start(self):
        log = open(self.folder / "dockerd.log", "ab")
        self.process = subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{self.lab.gw}", "dockerd",
             "--data-root", str(self.folder / "data"), "--exec-root", str(self.folder / "exec"),
             "--pidfile", str(self.folder / "dockerd.pid"), "--host", f"unix://{self.socket}",
             "--bridge=none", "--iptables=false", "--ip6tables=false", *self.options],
            stdout=log, stderr=log)
        end = time.monotonic() + 60
        while self.cli("version", check=False).returncode:
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError("no Docker daemon:\n" + self.log())
            time.sleep(0.1)

    def stop(self):
        if not self.process or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.unmount("data")

    def kill(self):
        """As a machine out of memory would; containers go on."""
        self.process.kill()
        self.process.wait()
        self.unmount("data")

    def unmount(self, below=""):
        """A daemon mounts its folder over itself, and networks of host containers. What one
        that ended amid its work has left mounted is hidden below that of the next, which then
        cannot remove it."""
        for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
            place = line.split()[1]
            if place.startswith(f"{self.folder}/{below}"):
                run("umount", "-l", place, check=False)

    def shims(self):
        """What is left of containers whose daemon is dead."""
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if b"shim" in words[0] and any(w.startswith(bytes(self.folder)) for w in words):
                    yield entry

    def down(self):
        if self.process and self.process.poll() is None:
            ids = self.cli("ps", "-aq", check=False).stdout.split()
            if ids:
                self.cli("rm", "-f", *ids, check=False)
        self.stop()
        for shim in list(self.shims()):
            with contextlib.suppress(OSError):
                inside = (shim / "task" / shim.name / "children").read_text().split()
                for pid in [*inside, shim.name]:
                    os.kill(int(pid), signal.SIGKILL)
        self.unmount()
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self):
        return (self.folder / "dockerd.log").read_text(errors="replace")[-4000:]

    def cli(self, *args, **kw):
        return run("docker", "-H", f"unix://{self.socket}", *args, **kw)

    def has_image(self, archive):
        self.cli("import", archive, IMAGE)

    def api_version(self):
        text = self.cli("version", "--format", "{{.Server.APIVersion}}").stdout
        return tuple(map(int, text.strip().split(".")))

    def containers(self):
        return self.cli("ps", "-a", "--format", "{{.Names}}").stdout.split()

    def inspect(self, name):
        return json.loads(self.cli("inspect", name).stdout)[0]

    def inside(self, sandbox, *command, **kw):
        """In a container, as its own root, not through the daemon inside."""
        return self.cli("exec", f"sandbox-{sandbox}", *command, check=False, **kw)
