# SPDX-License-Identifier: Apache-2.0
"""The clients that agents really run, against nginx, each with a credential it
never holds and each told no at once."""
import base64
import hashlib
import json
import random
import subprocess
import threading
import time

import nginx as web
import pytest
from conftest import open_lab
from lab import run
from nginx import NGINX4, NGINX6, PASSWORD, TOKEN, USER

BASIC = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
WEB, REPO, FREE = "https://web.lab.test", "https://repo.lab.test", "https://free.lab.test"
SHUT = "https://shut.lab.test/"
AT_ONCE = 2.0  # seconds that a refusal may take, beyond the client's own start


@pytest.fixture(scope="module")
def lab():
    def prepare(lab):
        lab.nginx = web.Nginx(lab)
        lab.nginx.start()
        lab.usual_policy = {
            "name": "lab", "sandboxes": {"ids": ["sandbox-*"]},
            "egress": [{"action": "deny", "target": "repo.lab.test", "methods": ["POST"],
                        "paths": ["/git/seed.git/git-receive-pack"]}] +
                      [{"action": "allow", "target": n} for n in
                       ("web.lab.test", "repo.lab.test", "free.lab.test")],
        }
    pins = {name: [NGINX4, NGINX6] for name in web.NAMES}
    with open_lab("k", {"pins": pins}, prepare) as lab:
        lab.credential("web-token", TOKEN)
        lab.binding({"name": "web", "match": {"hosts": ["web.lab.test"]},
                     "auth": {"type": "bearer", "credential": "web-token"}})
        lab.credential("git-login", BASIC)
        lab.binding({"name": "git", "match": {"hosts": ["repo.lab.test"], "paths": ["/git/*"]},
                     "auth": {"type": "basic", "credential": "git-login"}})
        yield lab


@pytest.fixture
def nginx(lab):
    """The server, with requests() of this test only."""
    mark, server = lab.nginx.mark(), lab.nginx

    class Seen:
        dir, www, repository = server.dir, server.www, server.repository

        @staticmethod
        def requests(**match):
            return server.requests(mark, **match)
    return Seen


def digest(data):
    return hashlib.sha256(data).hexdigest()


def brought(requests, want=f"Bearer {TOKEN}"):
    """All of these requests, of which there are some, carried the credential."""
    return bool(requests) and all(r["auth"] == want for r in requests)


def refused(sandbox, *cmd, **kw):
    """Runs a client that must fail at once; its output."""
    start = time.monotonic()
    sandbox.run(cmd[0], "--version", timeout=20)  # what merely starting it costs now
    started = time.monotonic()
    r = sandbox.run(*cmd, timeout=20, **kw)
    took = (time.monotonic() - started) - (started - start)
    assert r.returncode != 0, r.stdout
    assert took < AT_ONCE, f"{cmd[0]} needed {took:.1f} s to fail: {r.stderr}"
    return r.stdout + r.stderr


# -- curl ------------------------------------------------------------------

@pytest.mark.parametrize("family,address", [("-4", NGINX4), ("-6", NGINX6)])
def test_curl_over_v4_and_v6(sandbox, nginx, family, address):
    status, body, err = sandbox.curl(family, f"{WEB}/auth/index.html")
    assert (status, body) == (200, "<p>hello from nginx</p>\n"), err
    [r] = nginx.requests()
    assert brought([r]) and r["protocol"] == "HTTP/1.1" and r["scheme"] == "https"


def test_curl_keeps_its_connection_and_so_do_we(lab, sandbox, nginx):
    r = sandbox.run("curl", "-sS", "--http1.1", "-w", "%{num_connects} ",
                    *[x for i in range(20) for x in ("-o", "/dev/null", f"{WEB}/auth/index.html?{i}")])
    assert r.stdout.split() == ["1"] + ["0"] * 19, r.stderr
    seen = nginx.requests()
    assert len(seen) == 20 and brought(seen)
    # the origin's connection is kept as well
    assert len({q["conn"] for q in seen}) == 1


def test_curl_downloads_a_large_file_and_resumes_it(lab, sandbox, nginx):
    want = (nginx.www / "large").read_bytes()
    part = lab.tmp / "part"
    part.write_bytes(want[:10_000_000])
    r = sandbox.run("curl", "-sS", "-C", "-", "-o", part, f"{WEB}/auth/large")
    assert r.returncode == 0, r.stderr
    assert digest(part.read_bytes()) == digest(want)
    [q] = nginx.requests()
    assert q["status"] == 206 and q["range"] == "bytes=10000000-" and brought([q])


@pytest.mark.parametrize("how", [["-T"], ["-H", "Transfer-Encoding: chunked", "-T"]])
def test_curl_uploads(lab, sandbox, nginx, how):
    data = random.Random(6).randbytes(9 << 20)
    (lab.tmp / "up").write_bytes(data)
    status, body, err = sandbox.curl(*how, lab.tmp / "up", f"{WEB}/sum")
    assert status == 200 and body.split()[0] == digest(data), err
    [q] = nginx.requests()
    assert brought([q]) and (q["encoding"] == "chunked") == (len(how) > 1)


def test_curl_gzip_chunked_and_errors(sandbox, nginx):
    want = (nginx.www / "text.txt").read_text()
    status, body, _ = sandbox.curl("--compressed", f"{WEB}/auth/text.txt")
    assert status == 200 and body == want
    status, head, _ = sandbox.curl("-i", "-H", "Accept-Encoding: gzip", "-o", "/dev/null",
                                   "-D", "-", f"{WEB}/auth/text.txt")
    assert "content-encoding: gzip" in head.lower() and "chunked" in head.lower()
    status, body, _ = sandbox.curl("-i", f"{WEB}/chunked")
    assert "Transfer-Encoding: chunked" in body and body.endswith("x\nend\n")
    for code, text in ((503, "busy\n"), (500, "broken\n")):
        assert sandbox.curl(f"{WEB}/{code}")[:2] == (code, text)
    assert brought(nginx.requests())


def test_origin_that_hangs_up_is_a_502_at_once(sandbox, nginx):
    start = time.monotonic()
    status, body, _ = sandbox.curl(f"{WEB}/hang-up")
    assert status == 502 and json.loads(body)["reason"] == "origin_failed"
    assert time.monotonic() - start < AT_ONCE


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_curl_speaks_tls(sandbox, nginx, version):
    limits = ["--tlsv" + version, "--tls-max", version]
    assert sandbox.curl(*limits, f"{WEB}/auth/index.html")[0] == 200
    assert brought(nginx.requests())


def test_old_tls_is_refused(sandbox):
    refused(sandbox, "curl", "-sS", "--ciphers", "DEFAULT@SECLEVEL=0", "--tls-max", "1.1",
            f"{WEB}/auth/index.html")


def test_plain_http_is_proxied_without_the_credential(sandbox, nginx):
    status, body, _ = sandbox.curl("http://web.lab.test/index.html")
    assert (status, body) == (200, "<p>hello from nginx</p>\n")
    [q] = nginx.requests()
    assert q["auth"] == "" and q["scheme"] == "http"


def test_unbound_host_is_passed_through(lab, sandbox, nginx):
    data = (nginx.www / "large").read_bytes()
    r = sandbox.run("curl", "-sS", "--cacert", lab.origin_ca, "-o", lab.tmp / "free", f"{FREE}/large")
    assert r.returncode == 0, r.stderr
    assert digest((lab.tmp / "free").read_bytes()) == digest(data)
    [q] = nginx.requests()
    assert q["auth"] == ""
    assert lab.record(kind="tunnel", host="free.lab.test")["bytesIn"] > len(data)


# -- no, at once -------------------------------------------------------------

# speaks first, in text that is not HTTP, and waits for the other's line
SSH = """
import socket
s = socket.create_connection(('%s', 22), timeout=10)
s.sendall(b'SSH-2.0-client of the lab\\r\\n')
data = s.recv(100)
assert data.startswith(b'SSH-2.0-'), data
print(data.decode())
"""
SSH_SERVER = """
import socket, threading
s = socket.create_server(('%s', 22))
while True:
    c, _ = s.accept()
    if c.recv(4) == b'SSH-':
        c.sendall(b'SSH-2.0-server\\r\\n')
    c.close()
"""
RESOLVE = ["--resolve", f"shut.lab.test:443:{NGINX4}", "--resolve", f"shut.lab.test:80:{NGINX4}"]


@pytest.mark.parametrize("cmd", [
    ["curl", "-sS", SHUT], ["curl", "-sS", *RESOLVE, SHUT],
    ["curl", "-sS", "-f", *RESOLVE, "http://shut.lab.test/"],
    ["curl", "-sS", f"https://{NGINX4}/"], ["curl", "-sSf", f"http://{NGINX4}:8080/"],
    ["curl", "-sS", "-g", f"https://[{NGINX6}]/"],
    ["wget", "-q", "-O", "-", "--tries=1", SHUT],
    ["git", "clone", SHUT + "git/seed.git", "/nowhere/x"],
    ["node", "-e", f"fetch('{SHUT}').then(() => process.exit(0), () => process.exit(1))"],
    ["/usr/bin/python3", "-c", f"import urllib.request as u; u.urlopen('{SHUT}')"],
    ["openssl", "s_client", "-connect", f"{NGINX4}:443", "-servername", "shut.lab.test"],
    ["/usr/bin/python3", "-c", SSH % NGINX4], ["/usr/bin/python3", "-c", SSH % NGINX6],
], ids=lambda c: c[0].rsplit("/")[-1])
def test_denied_host_fails_at_once(sandbox, nginx, cmd):
    refused(sandbox, *cmd, input="", env=sandbox.env() | {"GIT_TERMINAL_PROMPT": "0"})
    assert not nginx.requests()


def test_ssh_reaches_an_allowed_address_and_no_other_port_does(lab, sandbox):
    lab.in_origin("/usr/bin/python3", "-c", SSH_SERVER % NGINX4)
    time.sleep(0.3)
    with lab.policy([{"action": "allow", "target": NGINX4, "ports": [22]}]):
        r = sandbox.python(SSH % NGINX4)
        assert r.stdout.strip() == "SSH-2.0-server", r.stderr
        refused(sandbox, "/usr/bin/python3", "-c", SSH.replace("22", "80") % NGINX4)


def test_what_is_not_http_cannot_pass_a_rule_about_methods(lab, sandbox, nginx):
    # nginx would answer HTTP/0.9, in which there is no version to know it by
    old = SSH.replace("22", "80").replace("SSH-2.0-client of the lab", "GET /index.html")
    with lab.policy([{"action": "allow", "target": NGINX4}]):
        assert "hello from nginx" in sandbox.python(old % NGINX4).stderr
    with lab.policy([{"action": "allow", "target": NGINX4, "methods": ["GET"], "paths": ["/x"]}]):
        out = refused(sandbox, "/usr/bin/python3", "-c", old % NGINX4)
        assert "hello" not in out
        assert lab.record(reason="not_tls_or_http")["verdict"] == "deny"


# -- wget --------------------------------------------------------------------

def wget(sandbox, *args, **kw):
    bundle = sandbox.env()["SSL_CERT_FILE"]
    return sandbox.run("wget", "-nv", "--tries=1", "--timeout=15", f"--ca-certificate={bundle}",
                       *args, **kw)


@pytest.mark.parametrize("family", ["-4", "-6"])
def test_wget(sandbox, nginx, family):
    r = wget(sandbox, family, "-O", "-", f"{WEB}/auth/index.html")
    assert r.stdout == "<p>hello from nginx</p>\n", r.stderr
    assert brought(nginx.requests())


def test_wget_with_a_login_of_its_own_gets_ours(sandbox, nginx):
    # wget asks without, would ask again after a 401; there is none
    r = wget(sandbox, "--user=me", "--password=guess", "-O", "-", f"{WEB}/auth/index.html")
    assert r.returncode == 0, r.stderr
    assert brought(nginx.requests()) and len(nginx.requests()) == 1


def test_wget_continues_a_large_file(lab, sandbox, nginx):
    want = (nginx.www / "large").read_bytes()
    part = lab.tmp / "wget-part"
    part.write_bytes(want[:5_000_000])
    r = wget(sandbox, "-c", "-O", part, f"{WEB}/auth/large")
    assert r.returncode == 0 and digest(part.read_bytes()) == digest(want), r.stderr
    assert nginx.requests()[0]["status"] == 206 and brought(nginx.requests())


# -- git ---------------------------------------------------------------------

@pytest.fixture
def folder(lab, request):
    path = lab.tmp / request.node.name.replace("[", "-").replace("]", "")
    path.mkdir()
    return path


def git(sandbox, *args, **kw):
    env = sandbox.env() | {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "/bin/false",
                           "GIT_CONFIG_NOSYSTEM": "1"} | kw.pop("env", {})
    return sandbox.run("git", "-c", "user.name=s", "-c", "user.email=s@lab.test",
                       "-c", "credential.helper=", *args, env=env, **kw)


@pytest.mark.parametrize("family", ["-4", "-6"])
def test_git_clone_of_more_than_5_mb(sandbox, nginx, folder, family):
    r = git(sandbox, "clone", "-q", family, f"{REPO}/git/seed.git", folder / "clone")
    assert r.returncode == 0, r.stderr
    head = run("git", "-C", folder / "clone", "rev-parse", "HEAD").stdout
    assert head == run("git", "-C", nginx.repository("seed.git"), "rev-parse", "main").stdout
    assert (folder / "clone" / "blob").stat().st_size == 6 << 20
    seen = nginx.requests()
    assert brought(seen, f"Basic {BASIC}") and all(q["user"] == USER for q in seen)
    config = (folder / "clone" / ".git" / "config").read_text()
    assert PASSWORD not in config and BASIC not in config


@pytest.mark.parametrize("url,extra", [
    (f"{REPO}/git/empty.git", []),
    (REPO.replace("://", "://x:placeholder@") + "/git/empty.git", []),
    (f"{REPO}/git/empty.git", ["-c", "http.extraHeader=Authorization: Basic cGxhY2U6aG9sZGVy"]),
], ids=["plain", "userinfo", "header"])
def test_case_28_git_push_of_a_pack_of_more_than_5_mb(sandbox, nginx, folder, url, extra):
    branch = folder.name
    assert git(sandbox, "init", "-q", "-b", branch, folder).returncode == 0
    (folder / "data").write_bytes(random.Random(branch).randbytes(7 << 20))
    git(sandbox, "-C", folder, "add", "data", check=True)
    git(sandbox, "-C", folder, "commit", "-q", "-m", "big", check=True)
    r = git(sandbox, *extra, "-C", folder, "push", "-q", url, branch)
    assert r.returncode == 0, r.stderr
    bare = nginx.repository("empty.git")
    assert run("git", "-C", bare, "cat-file", "-s", f"{branch}:data").stdout.strip() == str(7 << 20)
    posts = nginx.requests(method="POST")
    # git first asks with four bytes whether it may, then streams the pack
    assert [(q["length"], q["encoding"]) for q in posts] == [("4", ""), ("", "chunked")]
    assert brought(nginx.requests(), f"Basic {BASIC}")
    assert all(q["status"] == 200 for q in nginx.requests())


def test_git_with_a_wrong_credential_fails_and_never_asks(lab, sandbox, nginx, folder):
    lab.credential("git-login", base64.b64encode(b"builder:old").decode())
    try:
        out = refused(sandbox, "git", "-c", "credential.helper=", "ls-remote",
                      f"{REPO}/git/seed.git", env=sandbox.env() | {"GIT_TERMINAL_PROMPT": "0"})
        assert "could not read" in out or "Authentication failed" in out, out
        assert {q["status"] for q in nginx.requests()} == {401}
    finally:
        lab.credential("git-login", BASIC)
    assert git(sandbox, "ls-remote", f"{REPO}/git/seed.git").returncode == 0


def test_git_may_clone_where_it_may_not_push(lab, sandbox, nginx, folder):
    git(sandbox, "clone", "-q", f"{REPO}/git/seed.git", folder / "w", check=True)
    git(sandbox, "-C", folder / "w", "commit", "-q", "--allow-empty", "-m", "x", check=True)
    out = refused(sandbox, "git", "-C", str(folder / "w"), "push", "origin", "main")
    assert "403" in out, out
    assert not nginx.requests(path="/git/seed.git/git-receive-pack")
    record = lab.record(path="/git/seed.git/git-receive-pack")
    assert record["verdict"] == "deny" and record["status"] == 403


# -- node --------------------------------------------------------------------

NODE_HTTPS = """
const https = require('https');
const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
let reused = 0, left = 10;
function next() {
  if (!left--) { console.log('reused', reused); agent.destroy(); return; }
  const q = https.get('%s/auth/index.html?' + left, { agent, family: %d }, (r) => {
    if (r.statusCode != 200) { console.error(r.statusCode); process.exit(1); }
    let body = ''; r.on('data', (d) => body += d);
    r.on('end', () => { if (q.reusedSocket) reused++; setImmediate(next); });
  });
  q.on('error', (e) => { console.error(e); process.exit(1); });
}
next();
"""

NODE_FETCH = """
const { createHash } = require('crypto');
(async () => {
  const parts = await Promise.all([...Array(8).keys()].map(async (i) =>
    (await fetch('%(web)s/auth/index.html?' + i)).text()));
  const big = Buffer.from(await (await fetch('%(web)s/auth/large')).arrayBuffer());
  const text = await (await fetch('%(web)s/auth/text.txt')).text();
  const post = await fetch('%(web)s/sum', { method: 'POST', body: big, headers: {
    Authorization: 'Bearer placeholder' } });
  const busy = await fetch('%(web)s/503');
  console.log(JSON.stringify({ parts: new Set(parts).size, text: text.length, busy: busy.status,
    big: createHash('sha256').update(big).digest('hex'), sum: (await post.text()).split(' ')[0] }));
})().catch((e) => { console.error(e); process.exit(1); });
"""


@pytest.mark.parametrize("family", [4, 6])
def test_node_https_with_a_keep_alive_agent(sandbox, nginx, family):
    r = sandbox.run("node", "-e", NODE_HTTPS % (WEB, family))
    assert r.stdout.strip() == "reused 9", r.stdout + r.stderr
    assert len(nginx.requests()) == 10 and brought(nginx.requests())


def test_node_fetch(sandbox, nginx):
    r = sandbox.run("node", "-e", NODE_FETCH % {"web": WEB})
    assert r.returncode == 0, r.stderr
    got, want = json.loads(r.stdout), digest((nginx.www / "large").read_bytes())
    assert got == {"parts": 1, "text": (nginx.www / "text.txt").stat().st_size, "busy": 503,
                   "big": want, "sum": want}
    assert len(nginx.requests()) == 12 and brought(nginx.requests())


# -- python --------------------------------------------------------------------

def test_python_urllib(sandbox, nginx):
    r = sandbox.python(f"""
import hashlib, urllib.request as u, urllib.error
print(u.urlopen('{WEB}/auth/index.html').read().decode(), end='')
data = u.urlopen('{WEB}/auth/large').read()
print(hashlib.sha256(data).hexdigest())
q = u.Request('{WEB}/sum', data=data, headers={{'Authorization': 'Bearer mine'}})
print(u.urlopen(q).read().decode().split()[0])
try:
    u.urlopen('{WEB}/503')
except urllib.error.HTTPError as e:
    print(e.code)
""")
    want = digest((nginx.www / "large").read_bytes())
    assert r.stdout.split("\n")[:4] == ["<p>hello from nginx</p>", want, want, "503"], r.stderr
    assert len(nginx.requests()) == 4 and brought(nginx.requests())


def test_python_http_client_keeps_its_connection(sandbox, nginx):
    r = sandbox.python("""
import http.client
c = http.client.HTTPSConnection('web.lab.test', timeout=10)
c.connect()
sock, lengths = c.sock, []
for i in range(10):
    c.request('GET', '/auth/text.txt', headers={'Accept-Encoding': 'gzip' if i % 2 else 'identity'})
    lengths.append(len(c.getresponse().read()))
    assert c.sock is sock, 'the connection was closed'
def pieces():
    for i in range(100):
        yield b'x' * 1000
c.request('POST', '/sum', body=pieces(), encode_chunked=True,
          headers={'Transfer-Encoding': 'chunked'})
reply = c.getresponse()
print(reply.status, len(set(lengths)), reply.read().decode().split()[0])
""")
    assert r.stdout.split() == ["200", "2", digest(b"x" * 100000)], r.stdout + r.stderr
    assert len(nginx.requests()) == 11 and brought(nginx.requests())


# -- openssl -----------------------------------------------------------------

def test_openssl_s_client(sandbox, nginx):
    bundle = sandbox.env()["SSL_CERT_FILE"]
    for where in (f"{NGINX4}:443", f"[{NGINX6}]:443"):
        r = sandbox.run("openssl", "s_client", "-connect", where, "-servername", "web.lab.test",
                        "-verify_return_error", "-verify_hostname", "web.lab.test", "-CAfile",
                        bundle, "-quiet",
                        input="GET /auth/index.html HTTP/1.1\r\nHost: web.lab.test\r\n"
                        "Connection: close\r\n\r\n", timeout=20)
        assert "hello from nginx" in r.stdout, r.stdout + r.stderr
        assert TOKEN not in r.stdout + r.stderr
    assert len(nginx.requests()) == 2 and brought(nginx.requests())


@pytest.mark.parametrize("suite", ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384",
                                   "TLS_CHACHA20_POLY1305_SHA256"])
def test_openssl_updates_its_keys(sandbox, nginx, suite):
    """Between requests of one connection; with "K" it asks the gateway to do the same."""
    request = "GET /auth/index.html HTTP/1.1\r\nHost: web.lab.test\r\n\r\n"
    p = sandbox.popen("openssl", "s_client", "-connect", f"{NGINX4}:443", "-servername", "web.lab.test",
                      "-verify_return_error", "-tls1_3", "-ciphersuites", suite, "-CAfile",
                      sandbox.env()["SSL_CERT_FILE"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                      stderr=subprocess.STDOUT, text=True)
    late = threading.Timer(30, p.kill)
    late.start()

    def exchange(text, until):
        p.stdin.write(text)
        p.stdin.flush()
        for line in p.stdout:
            if until in line:
                return
        raise AssertionError(f"no {until}")
    try:
        for turn in ("", "K", "k", "K"):
            if turn:
                exchange(turn + "\n", "KEYUPDATE")
            exchange(request, "hello from nginx")
    finally:
        late.cancel()
        p.kill()
        p.wait()
    assert len(nginx.requests()) == 4 and brought(nginx.requests())
