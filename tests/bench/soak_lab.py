# SPDX-License-Identifier: Apache-2.0
"""soak_lab.py - the lab of tests/bench/soak: three sandboxes, five origins

The roles have no environment, so sanitizers get their options from a script
that stands where the supervisor looks for a role. Secrets are in processes that
nobody may attach to, so LeakSanitizer could fail to look: prove_leaks() has each
role lose a block on purpose, and tells which were caught.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
SCENES = SOURCE / "tests" / "scenes"
sys.path.insert(0, str(SCENES))
import lab as labs  # noqa: E402
from conftest import start_origin  # noqa: E402
from lab import ORIGIN4, ORIGIN6, Lab, run  # noqa: E402
import nginx  # noqa: E402
from test_l_http2 import SERVERS as NGINX_TWO, SINK  # noqa: E402
from test_w_websocket import SERVER as NGINX_WS  # noqa: E402

ROLES = ("gateway", "vault", "control", "queue")
ADDRESSES = {"two": "10.212.2.5", "grpc": "10.212.2.6", "ws": "10.212.2.7",
             "peer": "10.212.2.8"}
HOSTS = ("api", "plain", "pinned", "limited", "other")
# A small quarantine: freed memory is to be used again while we look. Symbols are
# looked up by named(): a role that takes a second to end would be killed.
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=1:symbolize=0:quarantine_size_mb=8:"
                           "thread_local_quarantine_size_kb=64",
           "UBSAN_OPTIONS": "print_stacktrace=1:symbolize=0"}
LOSER = """
#include <stdlib.h>
static void *volatile kept;
__attribute__((constructor)) static void lose(void)
{
	kept = malloc(4321);
	kept = malloc(1);
}
"""
SECRET = "sk-soak-%06d-2d7be1a04c554f9c"


class SoakLab(Lab):
    def __init__(self, build):
        super().__init__(sandboxes=3, tag="k", config={
            "pins": {f"{n}.lab.test": [ORIGIN4, ORIGIN6] for n in HOSTS} |
                    {f"{n}.lab.test": [a] for n, a in ADDRESSES.items()},
            "timeouts": {"idleMs": 4000}})
        self.build = build.resolve()
        labs.BIN = self.tmp / "bin"
        self.secret, self.rotations = 0, 0

    # -- programs ----------------------------------------------------------
    def install(self, preload=""):
        """The programs of the build, roles behind their options."""
        labs.BIN.mkdir(exist_ok=True)
        shutil.copy(self.build / "bin" / "sallyportd", labs.BIN)
        options = dict(OPTIONS, **({"LD_PRELOAD": preload} if preload else {}))
        for role in ROLES:
            script = labs.BIN / f"sallyport-{role}"
            script.write_text("#!/bin/sh\n" + "".join(f"export {k}='{v}'\n" for k, v in options.items())
                              + f'exec {self.build}/bin/sallyport-{role} "$@"\n')
            script.chmod(0o755)

    def start(self):
        saved = dict(os.environ)
        os.environ.update(OPTIONS)  # the supervisor's
        try:
            super().start()
        finally:
            os.environ.clear()
            os.environ.update(saved)

    def prove_leaks(self):
        """The roles whose leak is found at their end."""
        source, lib = self.tmp / "loser.c", self.tmp / "loser.so"
        source.write_text(LOSER)
        run("gcc", "-O0", "-shared", "-fPIC", "-o", lib, source)
        asan = run("gcc", "-print-file-name=libasan.so").stdout.strip()
        self.install(f"{os.path.realpath(asan)} {lib}")
        self.start()
        pids = {self.role_pid(role): role for role in ROLES}
        self.stop()
        log = self.log()
        found = {pids.get(int(p)) for p in re.findall(r"==(\d+)==ERROR: LeakSanitizer: detected", log)}
        self.log_path.rename(self.tmp / "proof.log")
        self.install()
        return [r for r in ROLES if r in found and "4321 byte" in log], log

    # -- origins -----------------------------------------------------------
    def origins(self):
        start_origin(self)
        for address in ADDRESSES.values():
            run("ip", "-n", self.org, "addr", "add", f"{address}/24", "dev", "o0")
        self.in_origin("/usr/bin/python3", "-c", SINK, stderr=subprocess.DEVNULL)
        www = self._nginx("two", NGINX_TWO)
        for n in (0, 1, 16384, 262144, 4 << 20):
            (www / str(n)).write_bytes((bytes(range(256)) * (n // 256 + 1))[:n])
        self._nginx("ws", NGINX_WS)
        self.python("ws_peer.py", "serve", "127.0.0.1", 8098, self.tmp / "ws.log")
        self._peer()
        crt, key = self.leaf("grpc", "grpc.lab.test")
        self.python("grpc_peer.py", "serve", ADDRESSES["grpc"] + ":443", crt, key,
                    self.tmp / "grpc.log")

    def python(self, program, *args):
        """A server of the scenes, once it is ready."""
        ready = self.tmp / f"{program}.ready"
        with open(ready, "wb") as out, open(self.tmp / f"{program}.err", "wb") as err:
            self.in_origin("/usr/bin/python3", SCENES / program, *args, stdout=out, stderr=err)
        self.wait(lambda: ready.read_text().strip(), 20, program)

    def _nginx(self, name, servers):
        """Started; the folder of its files."""
        crt, key = self.leaf(name, f"{name}.lab.test")
        nginx.launch(self, self.tmp / name, servers.format(v4=ADDRESSES[name], crt=crt, key=key))
        return self.tmp / name / "www"

    def _peer(self):
        crt, key = self.leaf("peer", "peer.lab.test")
        folder = self.tmp / "peer"
        folder.mkdir()
        (folder / "alpn").write_text("h2")
        self.python("h2_peer.py", ADDRESSES["peer"], crt, key, folder)

    # -- what is allowed, and changes ----------------------------------------
    def rules(self, more=()):
        limited = {"methods": ["GET"], "paths": ["/ok/*"]}
        hosts = ("api", "plain", "pinned", *ADDRESSES)
        self.put_policy("lab", {
            "name": "lab", "sandboxes": {"ids": ["sandbox-*"]}, "defaultAction": "deny",
            "passthrough": ["pinned.lab.test"],
            "egress": [{"action": "allow", "target": f"{h}.lab.test"} for h in hosts] + [
                {"action": "allow", "target": "limited.lab.test"} | limited,
                {"action": "allow", "target": ADDRESSES["two"] + "/32"}, *more]})

    def rotate(self):
        """A new value, and bindings that are new by their revision."""
        self.rotations += 1
        self.secret += 1
        self.credential("token", SECRET % self.secret)
        self.bind()

    def bind(self):
        spare = ["spare.lab.test"] if self.rotations % 2 else []
        for name in ("api", *ADDRESSES):
            self.binding({"name": name, "match": {"hosts": [f"{name}.lab.test", *(
                              spare if name == "api" else [])]},
                          "auth": {"type": "bearer", "credential": "token"},
                          "redactBody": name == "api"})

    def ready_for_traffic(self):
        self.start()
        for s in self.sandboxes[:2]:
            self.register(s, team="soak")
        self.rules()
        self.rotate()

    # -- what roles hold -----------------------------------------------------
    def roles(self):
        """{role: (pid, restarts)}, the supervisor too."""
        return {r["role"]: (r["pid"], r["restarts"]) for r in self.admin.get("/v1/status")["roles"]}

    @staticmethod
    def held(pid):
        """(descriptors, KiB of its own: pages of files, such as the database, are not)"""
        status = Path(f"/proc/{pid}/status").read_text()
        return (len(os.listdir(f"/proc/{pid}/fd")),
                int(re.search(r"RssAnon:\s+(\d+)", status)[1]))

    def counters(self):
        return self.admin.get("/v1/status")["gateway"]


def named(line):
    """A frame of a sanitizer's report with function, file and line."""
    frame = re.search(r"^ *#\d+ .*\((/\S+)\+(0x[0-9a-f]+)\)", line)
    if not frame or not os.path.exists(frame[1]):
        return line
    return line + " " + " ".join(run("addr2line", "-fpe", *frame.groups()).stdout.split())


def settle(seconds):
    """A sleep that says that it is on purpose."""
    time.sleep(seconds)


def lines_of(files, start=0):
    """JSON of all lines of the files, from an offset in the first; and how many
    were none."""
    records, broken = [], 0
    for file in files:
        with open(file, "rb") as f:
            f.seek(start)
            start = 0
            for line in f:
                try:
                    records.append(json.loads(line.decode()))
                except ValueError:
                    broken += 1
    return records, broken
