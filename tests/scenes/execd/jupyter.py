# SPDX-License-Identifier: Apache-2.0
"""jupyter.py - a real Jupyter server with an IPython kernel, on a loopback port"""
import json
import os
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path

from execd import free_port

TOKEN = "the-token-of-jupyter"
KERNEL = {"display_name": "Python", "language": "python", "argv": [
    "/usr/bin/python3", "-m", "ipykernel_launcher", "-f", "{connection_file}"]}


class Jupyter:
    """Its state is below `tmp`. Beside its default kernel (python3) it knows one of its own."""

    def __init__(self, tmp, port=None, base="/"):
        self.tmp, self.port, self.base = Path(tmp) / "jupyter", port or free_port(), base
        shutil.rmtree(self.tmp, ignore_errors=True)
        spec = self.tmp / "kernels" / "py"
        spec.mkdir(parents=True)
        (spec / "kernel.json").write_text(json.dumps(KERNEL))
        self.process = None

    @property
    def url(self):
        return f"http://localhost:{self.port}{self.base}"

    @property
    def env(self):
        return {"JUPYTER_HOST": self.url, "JUPYTER_TOKEN": TOKEN}

    def start(self, wait=True):
        with open(self.tmp / "log", "ab") as log:
            self.process = subprocess.Popen(
                ["/usr/bin/python3", "-m", "jupyter_server", "--allow-root", "--no-browser",
                 "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={self.port}",
                 "--ServerApp.port_retries=0", "--ServerApp.iopub_data_rate_limit=1e12", f"--ServerApp.token={TOKEN}",
                 f"--ServerApp.base_url={self.base}", f"--ServerApp.root_dir={self.tmp}",
                 "--KernelSpecManager.ensure_native_kernel=False",
                 "--KernelManager.autorestart=True", "--KernelRestarter.time_to_dead=0.3"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env=dict(os.environ, HOME=str(self.tmp), JUPYTER_PATH=str(self.tmp),
                         JUPYTER_DATA_DIR=str(self.tmp / "data"),
                         JUPYTER_CONFIG_DIR=str(self.tmp / "config"),
                         JUPYTER_RUNTIME_DIR=str(self.tmp / "run"),
                         IPYTHONDIR=str(self.tmp / "ipython")))
        if wait:
            self.wait_ready()
        return self

    def ask(self, path, method="GET"):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{self.base.rstrip('/')}{path}", method=method,
            headers={"Authorization": f"token {TOKEN}"})
        with urllib.request.urlopen(request, timeout=20) as reply:
            return json.loads(reply.read() or "null")

    def wait_ready(self, seconds=60):
        end = time.monotonic() + seconds
        while True:
            try:
                return self.ask("/api")
            except OSError:
                pass
            assert self.process.poll() is None, (self.tmp / "log").read_text()
            assert time.monotonic() < end, (self.tmp / "log").read_text()
            time.sleep(0.1)

    def kernels(self):
        return self.ask("/api/kernels")

    def kill(self):
        """Without a word; kernels whose server is gone end by themselves."""
        self.process.kill()
        self.process.wait()
        self.process = None

    def stop(self):
        """It and its kernels, which it started."""
        if not self.process:
            return
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None
