# SPDX-License-Identifier: Apache-2.0
"""Everything leaves through another proxy: what it is asked for, with which
credential, what becomes of its refusals, and what cannot go through it."""
import contextlib
import json
import shutil
import subprocess
import time

import pytest
from conftest import HERE, SECRET, open_lab
from lab import GATEWAY_O4, ORIGIN4, OTHER4

LOGIN = "corp-user:pass-9b1f04c6-word"
NAMES = {n + ".lab.test": ORIGIN4 for n in ("api", "plain", "pinned", "git", "limited", "free")}


class Proxy:
    """connect_peer.py in the origin's namespace, one per port."""

    def __init__(self, lab, port, **config):
        self.lab, self.port = lab, port
        self.log_path = lab.tmp / f"proxy-{port}.log"
        self.config = {"log": str(self.log_path), "names": NAMES, **config}
        path = lab.tmp / f"proxy-{port}.json"
        path.write_text(json.dumps(self.config))
        ready = lab.tmp / f"proxy-{port}.ready"
        self.process = lab.in_origin("/usr/bin/python3", HERE / "connect_peer.py", path, ORIGIN4,
                                     port, stdout=open(ready, "wb"))
        lab.wait(lambda: ready.read_text(), 10, "the proxy")

    def seen(self, **match):
        if not self.log_path.exists():
            return []
        records = [json.loads(x) for x in self.log_path.read_text().splitlines()]
        return [r for r in records if all(r.get(k) == v for k, v in match.items())]


@contextlib.contextmanager
def chained(tag, upstream, proxy=None, **config):
    """A lab whose gateway goes through a proxy on port 8080, if not told else."""
    made = []

    def prepare(lab):
        # straight from gateway to origin nothing leads but to the proxies and DNS
        if proxy is not None:
            extra = dict(proxy)
            if extra.pop("with_tls", False):
                extra["tls"] = [str(x) for x in lab.leaf("corp", "corp.lab.test")]
            made.append(Proxy(lab, 8080, **extra))

    with open_lab(tag, {"upstream": {"proxy": f"{ORIGIN4}:8080", **upstream}, **config},
                  prepare) as lab:
        lab.proxy = made[0] if made else None
        yield lab


def get(lab, url, *args):
    return lab.sandboxes[0].curl("-4", *args, url)


def nothing_is_told(lab, *texts):
    """The secret stands nowhere but where it belongs."""
    said = lab.log() + lab.audit_text() + "".join(texts)
    for pid in (lab.role_pid(r) for r in ("gateway", "vault", "control")):
        for name in ("cmdline", "environ"):
            with open(f"/proc/{pid}/{name}", "rb") as f:
                said += f.read().decode(errors="replace")
    for part in (LOGIN, LOGIN.split(":")[1], SECRET):
        assert part not in said


@pytest.fixture(scope="module")
def lab():
    with chained("x", {"proxyCredential": "corp-login"},
                 {"credential": LOGIN, "refuse": {"evil.lab.test": 403, OTHER4: 403}},
                 loops=1) as lab:
        lab.credential("corp-login", LOGIN)
        yield lab


def test_everything_goes_through_it(lab, origin_seen):
    before = len(lab.proxy.seen())
    for url in ("https://api.lab.test/chained", "http://plain.lab.test/chained-plain"):
        status, body, err = get(lab, url)
        assert status == 200, body + err
    seen = origin_seen()
    assert [r["peer"] for r in seen] == [ORIGIN4] * 2  # the proxy's own end, not ours
    assert ["Authorization", f"Bearer {SECRET}"] in seen[0]["headers"]
    # told the address that was checked, and nothing but what it needs
    asked = lab.proxy.seen()[before:]
    assert [r["target"] for r in asked] == [f"{ORIGIN4}:443", f"{ORIGIN4}:80"]
    assert all(r["right"] and r["method"] == "CONNECT" and r["host"] == r["target"] and
               r["fields"] == ["host", "proxy-authorization"] for r in asked)
    assert lab.record(path="/chained")["address"] == f"{ORIGIN4}:443"
    nothing_is_told(lab)


def test_what_is_not_opened_goes_through_it_too(lab):
    before = len(lab.proxy.seen())
    status, body, err = get(lab, "https://pinned.lab.test/own", "--cacert", lab.origin_ca)
    assert status == 200, body + err
    assert len(lab.proxy.seen()) == before + 1
    assert lab.record(kind="tunnel", host="pinned.lab.test")["address"] == f"{ORIGIN4}:443"


def test_a_connection_is_kept_and_used_again(lab, origin_seen):
    get(lab, "https://api.lab.test/kept")
    before = len(lab.proxy.seen())
    for i in range(3):
        assert get(lab, f"https://api.lab.test/kept-{i}")[0] == 200
    assert len(lab.proxy.seen()) == before
    assert lab.record(path="/kept-2")["originReused"]


def test_much_goes_through_unharmed(lab, sandbox_sum):
    assert sandbox_sum(lab, "https://api.lab.test/big/8000000")


@pytest.fixture
def sandbox_sum():
    def check(lab, url):
        r = lab.sandboxes[0].run("sh", "-c", f"curl -sS --max-time 30 {url} | sha256sum")
        import hashlib
        block = bytes(range(256)) * 256
        n, h = int(url.rsplit("/", 1)[1]), hashlib.sha256()
        while n:
            h.update(block[:n])
            n -= len(block[:n])
        return r.stdout.split()[0] == h.hexdigest()
    return check


def test_its_refusal_is_told(lab, origin_seen):
    status, body, _ = get(lab, "http://evil.lab.test/refused")
    assert status == 502
    told = json.loads(body)
    assert told["reason"] == "upstream_proxy" and "403" in told["detail"]
    assert not origin_seen()
    assert lab.record(path="/refused")["reason"] == "upstream_proxy"


def test_policy_and_guard_come_first(lab):
    before = len(lab.proxy.seen())
    assert get(lab, "http://other.lab.test/")[0] in (0, 403)
    with lab.policy([], defaultAction="allow"):
        assert get(lab, "http://free.lab.test/")[0] in (0, 403)  # private, not pinned
    assert len(lab.proxy.seen()) == before


def test_the_explicit_proxy_in_front_of_it(lab, origin_seen):
    status, body, err = get(lab, "https://api.lab.test/both", "-x",
                            "http://proxy.sallyport.internal:3128")
    assert status == 200, body + err
    assert ["Authorization", f"Bearer {SECRET}"] in origin_seen(path="/both")[0]["headers"]


def test_a_new_credential_counts_at_once(lab):
    """And one that is wrong, or none, is told as such."""
    url = "http://limited.lab.test/ok/rotated"
    closing = ("-H", "Connection: close")
    try:
        lab.credential("corp-login", "corp-user:wrong-7d21c0aa")
        status, body, _ = get(lab, url, *closing)
        assert status == 502 and "407" in json.loads(body)["detail"], body
        assert "7d21c0aa" not in body + lab.log() + lab.audit_text()
        lab.admin.call("DELETE", "/v1/credentials/corp-login", expect=204)
        before = len(lab.proxy.seen())
        status, body, _ = get(lab, url, *closing)
        assert status == 502 and "no credential" in json.loads(body)["detail"], body
        assert len(lab.proxy.seen()) == before  # it was not even asked
    finally:
        lab.credential("corp-login", LOGIN)
    assert get(lab, url, *closing)[0] == 200
    nothing_is_told(lab, body)


def test_udp_is_refused(lab):
    """CONNECT carries TCP alone, whatever policy says of UDP."""
    with lab.policy([{"action": "allow", "target": f"{ORIGIN4}/32", "protocol": "udp"}]):
        r = lab.sandboxes[0].python("""
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect((sys.argv[1], 9999)); s.settimeout(3)
try:
    for i in range(3):
        s.send(b'x'); time.sleep(0.2)
    s.recv(100); print('answered')
except TimeoutError: print('silence')
except OSError as e: print('refused', e.errno)
""", ORIGIN4)
        assert r.stdout.startswith("refused"), r.stdout + r.stderr
        assert lab.record(scheme="udp")["reason"] == "upstream_proxy"


def test_no_proxy_for_some():
    """Networks and names that are near are reached directly."""
    with chained("x2", {"noProxy": ["plain.lab.test", f"{OTHER4}/32"]}, {}) as lab:
        for url in ("http://plain.lab.test/near", "http://evil.lab.test/near",
                    "http://limited.lab.test/ok/far"):
            assert get(lab, url)[0] == 200
        assert [r["target"] for r in lab.proxy.seen()] == [f"{ORIGIN4}:80"]
        seen = [json.loads(x) for x in lab.origin_log.read_text().splitlines()]
        assert [r["peer"] for r in seen] == [GATEWAY_O4, GATEWAY_O4, ORIGIN4]


def test_it_resolves():
    """Names that only the proxy can resolve; pins are ours all the same."""
    with chained("x3", {"proxyResolves": True, "proxyTls": False},
                 {"names": {**NAMES, "far.lab.test": ORIGIN4, "git.lab.test": ORIGIN4}}) as lab:
        with lab.policy([{"action": "allow", "target": "far.lab.test"},
                         {"action": "allow", "target": "api.lab.test"}]):
            explicit = ("-x", "http://proxy.sallyport.internal:3128")
            status, body, err = get(lab, "http://far.lab.test/far", *explicit)
            assert status == 200, body + err
            # without a proxy of its own the client resolves it to a stand-in
            assert get(lab, "http://far.lab.test/intercepted")[0] == 200
            assert lab.record(path="/intercepted")["original"] == "192.0.0.8:80"
            r = lab.sandboxes[0].python("import socket; s = socket.create_connection("
                                        "('far.lab.test', 22), 5); print(s.recv(10))")
            assert "reset" in r.stderr.lower()
            # a second one is on the kept connection, or asked for alike
            assert get(lab, "http://far.lab.test/again", *explicit)[0] == 200
            assert {r["target"] for r in lab.proxy.seen()} == {"far.lab.test:80"}
            assert "address" not in lab.record(path="/far")
            assert get(lab, "https://api.lab.test/pinned", *explicit)[0] == 200
            assert lab.proxy.seen()[-1]["target"] == f"{ORIGIN4}:443"
            # names that are of this machine are nobody's to resolve there
            assert get(lab, "http://localhost/", "--noproxy", "", *explicit)[0] == 403
        # a tunnel that was allowed by name alone is cut by name
        code = """
import socket, sys
s = socket.create_connection(('192.0.0.8', 3128), 10)
s.sendall(b'CONNECT far.lab.test:80 HTTP/1.1\\r\\nHost: far.lab.test:80\\r\\n\\r\\n'); s.recv(1000)
s.sendall(b'\\0\\1\\2'); print('up', flush=True)
s.settimeout(10)
try: print('end' if not s.recv(100) else 'data')
except ConnectionError: print('reset')
except TimeoutError: print('open')
"""
        with lab.policy([{"action": "allow", "target": "far.lab.test"}]):
            p = lab.sandboxes[0].popen("/usr/bin/python3", "-c", code, stdout=subprocess.PIPE,
                                       text=True)
            assert p.stdout.readline().strip() == "up"
            time.sleep(0.3)
        assert p.stdout.readline().strip() in ("reset", "end")
        p.wait(10)


def test_tls_to_it(sandbox_sum):
    """Proved by its own name; what is inside is TLS once more, or passes."""
    with chained("x4", {"proxy": "corp.lab.test:8080", "proxyTls": True,
                        "proxyCredential": "corp-login"},
                 {"with_tls": True, "credential": LOGIN},
                 pins={"corp.lab.test": [ORIGIN4]}) as lab:
        # open_lab has pins of its own
        lab.credential("corp-login", LOGIN)
        lab.stop()
        pins = json.loads(lab.config_path.read_text())["pins"]
        lab.configure(pins={**pins, "corp.lab.test": [ORIGIN4]})
        lab.start()
        for i in range(3):
            status, body, err = get(lab, f"https://api.lab.test/deep-{i}")
            assert status == 200, body + err
        assert get(lab, "https://pinned.lab.test/own", "--cacert", lab.origin_ca)[0] == 200
        assert get(lab, "http://plain.lab.test/plain")[0] == 200
        assert all(r["right"] for r in lab.proxy.seen()) and len(lab.proxy.seen()) >= 3
        assert sandbox_sum(lab, "https://api.lab.test/big/5000000")
        assert sandbox_sum(lab, "http://plain.lab.test/big/5000000")
        nothing_is_told(lab)
        # no descriptor stays behind once the kept connections are over
        gateway = lab.role_pid("gateway")
        lab.wait(lambda: len(lab.records(path="/plain")), 5, "the record")
        lab.stop()
        # another name than its certificate's
        lab.configure(pins={**pins, "liar.lab.test": [ORIGIN4]},
                      upstream={"proxy": "liar.lab.test:8080"})
        lab.start()
        status, body, _ = get(lab, "http://plain.lab.test/lied")
        assert status == 502 and "not proved" in json.loads(body)["detail"], body
        assert gateway != lab.role_pid("gateway")


@pytest.mark.parametrize("mode, status, words", [
    ("chatty", 200, ""), ("mute", 502, "in time"), ("endless", 502, "protocol"),
    ("garbage", 502, "protocol")])
def test_a_proxy_that_behaves_oddly(mode, status, words):
    with chained("x5", {}, {"mode": mode}, timeouts={"connectMs": 700, "handshakeMs": 700}) as lab:
        began = time.monotonic()
        got, body, err = get(lab, "http://plain.lab.test/odd")
        assert got == status, body + err
        assert time.monotonic() - began < 6
        assert words in body


def test_a_proxy_that_is_not_there():
    with chained("x6", {"proxy": f"{ORIGIN4}:8081"}) as lab:
        status, body, _ = get(lab, "http://plain.lab.test/gone")
        assert status == 502 and "could not be reached" in json.loads(body)["detail"], body
        r = lab.sandboxes[0].curl("https://pinned.lab.test/gone")
        assert r[0] == 0
        assert lab.record(host="pinned.lab.test")["reason"] == "upstream_proxy"


SQUID = """
http_port {address}:8080
acl all_ports port 1-65535
{auth}
http_access allow all_ports
cache deny all
cache_log {dir}/cache.log
access_log none
pid_filename {dir}/squid.pid
coredump_dir {dir}
cache_effective_user proxy
shutdown_lifetime 0 seconds
visible_hostname squid.lab.test
"""


@pytest.mark.skipif(not shutil.which("squid"), reason="needs squid")
@pytest.mark.parametrize("login", [None, LOGIN])
def test_a_real_one(login, sandbox_sum):
    with chained("x7", {"proxyCredential": "corp-login"} if login else {}) as lab:
        base = lab.tmp / "squid"
        base.mkdir(mode=0o777)
        base.chmod(0o777)
        auth = ""
        if login:
            helper = base / "check.py"
            helper.write_text("#!/usr/bin/python3\nimport sys\nfor line in sys.stdin:\n"
                              f"    ok = line.split() == {login.split(':')!r}\n"
                              "    print('OK' if ok else 'ERR', flush=True)\n")
            helper.chmod(0o755)
            auth = (f"auth_param basic program {helper}\nauth_param basic realm lab\n"
                    "acl known proxy_auth REQUIRED\nhttp_access deny !known")
        (base / "squid.conf").write_text(SQUID.format(address=ORIGIN4, dir=base, auth=auth))
        lab.in_origin("squid", "-N", "-f", base / "squid.conf", stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL)

        def listens():
            r = lab.sandboxes[0].lab
            out = subprocess.run(["ip", "netns", "exec", r.org, "ss", "-ltn"], capture_output=True,
                                 text=True).stdout
            return ":8080" in out
        lab.wait(listens, 30, "squid")
        if login:
            status, body, _ = get(lab, "http://plain.lab.test/")
            assert status == 502, body
            lab.credential("corp-login", login)
        for url in ("https://api.lab.test/squid", "http://plain.lab.test/squid"):
            status, body, err = get(lab, url)
            assert status == 200, body + err
        assert sandbox_sum(lab, "https://api.lab.test/big/3000000")
        nothing_is_told(lab)
