# SPDX-License-Identifier: Apache-2.0
"""h2_lab.py - a lab with short deadlines, one loop, and an origin that obeys"""
import contextlib
import json
import os
import re
import signal
import time

import nginx
import pytest
from conftest import HERE, open_lab
from lab import run

# the peer; nginx, also one that ends each connection after ten requests; nghttpx
HOST, WEB, SHORT, NGHTTPX = "peer.lab.test", "web2.lab.test", "short2.lab.test", "x.lab.test"
ADDRESS = {HOST: "10.212.2.8", WEB: "10.212.2.9", SHORT: "10.212.2.10", NGHTTPX: "10.212.2.11"}
H2 = ADDRESS[HOST]
HEAD_MS, IDLE_MS, FIRST_BYTE_MS, DRAIN_MS = 1500, 2500, 5000, 4000
CONFIG = {"pins": {host: [address] for host, address in ADDRESS.items()}, "loops": 1,
          "timeouts": {"headMs": HEAD_MS, "idleMs": IDLE_MS, "firstByteMs": FIRST_BYTE_MS,
                       "drainMs": DRAIN_MS}}
EGRESS = [{"action": "allow", "target": t}
          for host, address in ADDRESS.items() for t in (host, f"{address}/32")]
SERVER = """
  server {{
    listen {address}:443 ssl http2; server_name {host}; keepalive_requests {requests};
    ssl_certificate {crt}; ssl_certificate_key {key};
    location /say/ {{ return 200 "said $request_uri\\n"; }}
  }}
"""


class Nginx:
    """Two servers of HTTP/2, and what they saw."""

    def __init__(self, lab):
        self.dir, servers = lab.tmp / "nginx2", []
        (self.dir / "www" / "big").mkdir(parents=True)
        (self.dir / "www" / "big" / "1000000").write_bytes(b"x" * 1000000)
        for host, requests in ((WEB, 100000), (SHORT, 10)):
            crt, key = lab.leaf(host, host)
            servers.append(SERVER.format(address=ADDRESS[host], host=host, requests=requests,
                                         crt=crt, key=key))
        nginx.launch(lab, self.dir, "http2_max_concurrent_streams 128;" + "".join(servers))

    def reload(self):
        os.kill(int((self.dir / "nginx.pid").read_text()), signal.SIGHUP)

    def seen(self, **match):
        time.sleep(0.1)
        return nginx.requests(self.dir, **match)


class Peer:
    """h2_peer.py, and what it saw."""

    def __init__(self, lab):
        self.folder = lab.tmp / "peer"
        self.folder.mkdir()
        self.offers("h2")
        crt, key = lab.leaf("peer", HOST)
        with open(lab.tmp / "peer.out", "wb") as out:
            lab.in_origin("/usr/bin/python3", HERE / "h2_peer.py", H2, crt, key, self.folder,
                          stdout=out)
        lab.wait(lambda: (lab.tmp / "peer.out").read_text(), 10, "the peer")

    def offers(self, *protocols):
        (self.folder / "alpn").write_text(" ".join(protocols))

    def seen(self, **match):
        log = self.folder / "log"
        records = [json.loads(x) for x in log.read_text().splitlines()] if log.exists() else []
        return [r for r in records if all(r.get(k) == v for k, v in match.items())]


@contextlib.contextmanager
def open_peer(tag, **config):
    """Sections of config go on top of CONFIG."""
    with open_lab(tag=tag, config=CONFIG | config) as lab:
        for address in ADDRESS.values():
            run("ip", "-n", lab.org, "addr", "add", f"{address}/24", "dev", "o0")
        lab.peer, lab.nginx = Peer(lab), Nginx(lab)
        lab.usual_policy = dict(lab.usual_policy, egress=lab.usual_policy["egress"] + EGRESS)
        lab.put_policy("lab", lab.usual_policy)
        lab.binding({"name": "opened", "match": {"hosts": list(ADDRESS)},
                     "auth": {"type": "bearer", "credential": "api-token"}})
        lab.wait(lambda: ask(lab.sandboxes[1])[0] == "200", 5, "the policy")
        yield lab
        assert "Sanitizer" not in lab.log() and "runtime error" not in lab.log(), lab.log()


@pytest.fixture(scope="module")
def peer():
    with open_peer("n") as lab:
        yield lab


def curl(sandbox, path, *args, host=HOST, **kw):
    """curl over HTTP/2, in a sandbox."""
    return sandbox.run("curl", "-sS", "--http2", "--max-time", "20", "--resolve",
                       f"{host}:443:{ADDRESS[host]}", *args, f"https://{host}{path}", **kw)


def ask(sandbox, path="/ok", *args):
    """A well-behaved request: status and seconds."""
    start = time.monotonic()
    r = curl(sandbox, path, "-o", "/dev/null", "-w", "%{http_code}", *args)
    return r.stdout, time.monotonic() - start


def rss(lab):
    """KiB of the gateway."""
    pid = lab.role_pid("gateway")
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read())[1])


def counter(lab, name):
    return lab.admin.get("/v1/status")["gateway"]["counters"][name]
