# SPDX-License-Identifier: Apache-2.0
"""Values are used by everybody's traffic and found nowhere but in locked memory
of the two roles that need them."""
import base64
import http.client
import json
import os
import pwd
import re
import secrets
import signal
import socket
import time
import urllib.parse
from pathlib import Path

import memory
import pytest
from conftest import open_lab
from lab import BIN, SOURCE, run

ACCOUNT = "nobody"
KINDS = ("bearer", "plain", "basic", "apikey", "custom", "spare", "rotated", "patched", "refused",
         "deleted", "viacli", "pieces", "pipelined", "long", "viarun", "overtls")


class Values:
    """A fresh value for each kind: nothing in the sources holds it."""

    def __init__(self):
        for kind in KINDS:
            setattr(self, kind, f"zq-{kind}-{secrets.token_hex(12)}")
        self.basic = base64.b64encode(f"user:{self.basic}".encode()).decode()
        self.long *= 150  # over one packet's worth, below the limit of a header
        self.live = (self.bearer, self.plain, self.basic, self.apikey, self.custom)

    def all(self):
        return [getattr(self, k)[:60] for k in KINDS]


def raw_admin(lab, *pieces):
    """Bytes to the admin socket as they are, with a pause between; the reply."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        s.connect(str(lab.admin.path))
        for piece in pieces:
            s.sendall(piece.encode())
            time.sleep(0.05)
        data = b""
        while True:
            more = s.recv(65536)
            if not more:
                return data.decode()
            data += more


def put_text(name, value, *, close=True, chunked=False):
    body = json.dumps({"name": name, "source": {"value": value}})
    head = f"PUT /v1/credentials/{name} HTTP/1.1\r\nHost: s\r\n"
    head += "Connection: close\r\n" if close else ""
    if chunked:
        half = len(body) // 2
        return head + "Transfer-Encoding: chunked\r\n\r\n", [
            f"{len(p):x}\r\n{p}\r\n" for p in (body[:half], body[half:])] + ["0\r\n\r\n"]
    return head + f"Content-Length: {len(body)}\r\n\r\n" + body


def store(lab, v):
    """Every way in which a value can come to the daemon, well and badly."""
    for name, value in (("bearer", v.bearer), ("basic", v.basic), ("plain", v.plain), ("apikey", v.apikey),
                        ("custom", v.custom), ("spare", v.spare), ("long", v.long),
                        ("gone", v.deleted), ("rotated", v.rotated)):
        lab.credential(name, value)
    lab.admin.call("DELETE", "/v1/credentials/gone", expect=204)
    auths = {"bearer": {"type": "bearer", "credential": "bearer"},
             "basic": {"type": "basic", "credential": "basic"},
             "apikey": {"type": "apiKey", "name": "X-Api-Key", "credential": "apikey"},
             "custom": {"type": "customHeaders", "headers": [{"name": "X-One", "credential": "custom"}]},
             "rotated": {"type": "bearer", "credential": "rotated"}}
    for name, auth in auths.items():
        lab.binding({"name": name, "match": {"hosts": ["pinned.lab.test"], "paths": [f"/{name}/*"]},
                     "auth": auth})
    lab.binding({"name": "plain", "match": {"hosts": ["pinned.lab.test"], "schemes": ["http"],
                                            "ports": [80]},
                 "auth": {"type": "bearer", "credential": "plain"}})
    lab.admin.call("PATCH", "/v1/vault", {"credentials": {"add": [
        {"name": "patched", "source": {"value": v.patched}}]}}, expect=200)
    # refused: an unknown field, a name that is another's, a value no header takes
    for body in ({"name": "refused", "source": {"value": v.refused}, "colour": 1},
                 {"name": "other", "source": {"value": v.refused}},
                 {"name": "refused", "source": {"value": v.refused + "\r\n"}},
                 {"name": "refused", "source": {"type": v.refused, "value": v.refused}}):
        status, reply = lab.admin.call("PUT", "/v1/credentials/refused", body)
        assert status == 400 and v.refused not in str(reply)
    broken = '{"name": "refused", "source": {"value": "%s"' % v.refused
    reply = raw_admin(lab, "PUT /v1/credentials/refused HTTP/1.1\r\nHost: s\r\nConnection: close\r\n"
                      f"Content-Length: {len(broken)}\r\n\r\n{broken}")
    assert " 400 " in reply and v.refused not in reply
    reply = raw_admin(lab, f"GET /v1/credentials/{v.refused} HTTP/1.1\r\nHost: s\r\n"
                      f"Authorization: Bearer {v.refused}\r\nConnection: close\r\n\r\n")
    assert " 404 " in reply and v.refused not in reply
    head, chunks = put_text("pieces", v.pieces, chunked=True)
    assert " 201 " in raw_admin(lab, head, *chunks)
    assert raw_admin(lab, put_text("pipelined", v.pipelined, close=False) +
                     put_text("pipelined", v.pipelined)).count("HTTP/1.1 20") == 2
    run(BIN / "sallyport", "vault", "put", "viacli", "--socket", lab.admin.path, input=v.viacli)


TALK = """
import http.client, sys, time
c = http.client.HTTPSConnection('pinned.lab.test', timeout=20)
for kind in ('bearer', 'basic', 'apikey', 'custom', 'rotated'):
    for path in ('x', 'y?q=1'):
        c.request('GET', f'/{kind}/{path}')
        print(c.getresponse().read().decode())
c = http.client.HTTPSConnection('api.lab.test', timeout=20)
for path in ('/big/100000', '/401', '/trailers', '/reflect', '/reflect-in-parts'):
    c.request('GET', path)
    r = c.getresponse()
    print(r.status, r.getheaders(), len(r.read()))
c = http.client.HTTPConnection('pinned.lab.test', timeout=20)
c.request('GET', '/plain/x')
print(c.getresponse().read().decode())
print('ready', flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def values():
    return Values()


@pytest.fixture(scope="module")
def lab(values):
    """Everything has happened already; a client is still there."""
    config = {"logLevel": "debug", "user": ACCOUNT, "admin": {"listen": "127.0.0.1:8443"}}

    def prepare(lab):
        certificate, key = lab.leaf("admin", "admin.lab.test")
        key.chmod(0o644)
        config["admin"].update(certificate=str(certificate), key=str(key))

    with open_lab("s", config, prepare) as lab:
        store(lab, values)
        lab.credential("api-token", values.bearer)  # what /reflect sends back
        client = lab.sandboxes[0].popen("/usr/bin/python3", "-c", TALK,
                                        stdout=open(lab.tmp / "client.out", "wb"))
        lab.procs.append(client)
        out = lab.tmp / "client.out"
        lab.wait(lambda: "ready" in out.read_text(), 20, "the client")
        lab.credential("rotated", "an-innocent-new-value")
        lab.admin.call("POST", "/v1/vault/rotate-dek", expect=200)
        lab.client = client
        yield lab
        client.kill()


def holds(text, values):
    return [v for v in values.all() if v in text]


def test_the_origin_received_them(lab, values):
    """Else nothing below would mean anything."""
    log = lab.origin_log.read_text()
    for value in values.live + (values.rotated,):
        assert value in log


def test_replies_environment_and_memory_of_the_sandbox(lab, values):
    pids = memory.pids_of_namespace(lab.sandboxes[0].ns)
    assert lab.client.pid in pids
    for pid in pids:
        assert not memory.search(pid, values.all())
        assert not holds(Path(f"/proc/{pid}/environ").read_text(), values)
    assert memory.search(lab.client.pid, ["pinned.lab.test"])  # the search does find
    out = (lab.tmp / "client.out").read_text()
    assert not holds(out, values) and "[REDACTED]" in out


def test_logs_audit_database_and_run_folder(lab, values):
    looked = 0
    for place in (lab.log_path, lab.audit_path, lab.state, lab.run_dir, lab.policies,
                  lab.config_path):
        for file in [place] if place.is_file() else place.rglob("*"):
            if file.is_file():
                assert not holds(file.read_bytes().decode("latin1"), values), file
                looked += 1
    assert looked >= 6 and "debug" in lab.log()
    assert lab.audit_text().count('"injected":true') >= 10


def test_every_reply_of_the_api(lab, values):
    routes = re.findall(r'ROUTE\("GET", "([^"]+)"', (SOURCE / "src/control/routes.def").read_text())
    names = {"/v1/credentials": ["bearer", "spare", "refused"], "/v1/bindings": ["bearer", "custom"],
             "/v1/sandboxes": ["sandbox-1"], "/v1/policies": ["lab"]}
    query = {"/v1/audit/tail": "?lines=10000",
             "/v1/explain": "?sandbox=sandbox-1&url=" + urllib.parse.quote("https://api.lab.test/x")}
    asked = 0
    for route in routes:
        path = re.sub(r"/\{.*", "", route)
        for name in names[path] if "{" in route else [None]:
            status, reply = lab.admin.call("GET", path + (f"/{name}" if name else query.get(path, "")))
            assert status == (404 if name == "refused" else 200), (route, reply)
            assert not holds(json.dumps(reply) if not isinstance(reply, str) else reply, values), route
            asked += 1
    assert asked > len(routes) > 10


def test_command_lines_and_environments_of_all_roles(lab, values):
    for pid in memory.pids_of_namespace(lab.gw):
        for what in ("cmdline", "environ"):
            assert not holds(Path(f"/proc/{pid}/{what}").read_bytes().decode("latin1"), values)


@pytest.mark.parametrize("role", ["supervisor", "control"])
def test_roles_that_must_not_keep_a_value(lab, values, role):
    pid = lab.daemon.pid if role == "supervisor" else lab.role_pid(role)
    assert memory.search(pid, [str(lab.run_dir)])  # the search does find
    assert memory.search(pid, values.all()) == []


@pytest.mark.parametrize("role", ["gateway", "vault"])
def test_roles_that_may_hold_them_only_in_locked_memory(lab, values, role):
    hits = memory.search(lab.role_pid(role), values.all())
    assert [h for h in hits if not h.guarded] == []
    if role == "gateway":  # exactly the values of active bindings
        assert {h.needle for h in hits} == set(values.live)


@pytest.mark.parametrize("path", ["trailers", "reflect", "reflect-in-parts", "401", "big/100000"])
def test_what_an_origin_echoes_does_not_stay_in_the_gateway(lab, values, path):
    status, body, _ = lab.sandboxes[0].curl("-i", f"https://api.lab.test/{path}")
    assert status and not holds(body, values)
    assert [h for h in memory.search(lab.role_pid("gateway"), values.all()) if not h.guarded] == []


def test_nobody_reads_a_role_not_even_its_own_account(lab):
    uid = pwd.getpwnam(ACCOUNT).pw_uid
    for role in ("gateway", "vault", "control"):
        pid = lab.role_pid(role)
        assert f"Uid:\t{uid}\t{uid}\t" in Path(f"/proc/{pid}/status").read_text()
        for what in ("mem", "environ", "maps"):
            r = run("setpriv", f"--reuid={uid}", "--clear-groups", "head", "-c", "1",
                    f"/proc/{pid}/{what}", check=False)
            assert r.returncode and "Permission denied" in r.stderr, (role, what)


def test_command_in_a_sandbox_of_run_finds_none(lab, values, origin_seen):
    folder = lab.tmp / "run-files"
    folder.mkdir()
    (folder / "token").write_text(values.viarun + "\n")
    (folder / "policy.yaml").write_text(
        "policies:\n  - name: run\n    egress:\n      - {action: allow, target: pinned.lab.test}\n")
    (folder / "binding.json").write_text(json.dumps({
        "name": "run", "match": {"hosts": ["pinned.lab.test"], "paths": ["/run/*"]},
        "auth": {"type": "bearer", "credential": "run-token"}}))
    # the origin's own log is in the lab's folder, and rightly full of values
    script = (f"curl -sS https://pinned.lab.test/run/1 && sleep 30 & sleep 1; "
              f"/usr/bin/python3 {SOURCE}/tests/scenes/look.py 'zq-[a-z]+-[0-9a-f]{{24}}' "
              f"{lab.tmp} /etc /run /dev/shm /var/log /home")
    r = run("ip", "netns", "exec", lab.gw, BIN / "sallyport", "run", "--config", lab.config_path,
            "--policy", folder / "policy.yaml", "--binding", folder / "binding.json",
            "--credential", f"run-token=@{folder / 'token'}", "--", "/bin/sh", "-c", script,
            env={**os.environ, "LEAKED": values.viarun}, check=False)
    found = re.findall("FOUND.*", r.stdout)
    other = [f for f in found if not f.endswith(str(lab.origin_log))]
    assert found and other == [] and r.returncode == 0, r.stdout + r.stderr
    looked = re.search(r"looked (\d+) (\d+)", r.stdout)
    assert int(looked[1]) > 100 and int(looked[2]) >= 2, r.stdout
    [request] = origin_seen(path="/run/1")
    assert dict(request["headers"])["Authorization"] == f"Bearer {values.viarun}"
    assert values.viarun not in r.stderr and "injected" in r.stderr, r.stderr
    assert memory.search(lab.role_pid("control"), values.all()) == []
    # the credential went with its sandbox
    lab.wait(lambda: not memory.search(lab.role_pid("gateway"), [values.viarun]), 5,
             "the gateway to forget")


def test_values_that_came_over_tls_do_not_stay(lab, values):
    token = lab.admin.call("POST", "/v1/tokens", {"name": "tls"}, expect=201)[1]["token"]
    body = json.dumps({"name": "overtls", "source": {"value": values.overtls}})
    r = run("ip", "netns", "exec", lab.gw, "curl", "-sS", "--cacert", lab.origin_ca, "-X", "PUT",
            "-H", "@-", "--data-binary", "@" + str(write(lab.tmp / "body", body)),
            "--resolve", f"admin.lab.test:8443:127.0.0.1", "https://admin.lab.test:8443/v1/credentials/overtls",
            input=f"Authorization: Bearer {token}\n")
    assert '"sourceType":"inline"' in r.stdout, r.stdout
    (lab.tmp / "body").unlink()
    assert memory.search(lab.role_pid("control"), values.all() + [token]) == []


def write(path, text):
    path.write_text(text)
    return path


def cores():
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    folders = [Path("/"), Path.cwd()] + ([Path(pattern).parent] if pattern.startswith("/") else [])
    return {f for folder in folders for f in folder.glob("*core*") if f.is_file()}


@pytest.mark.parametrize("role", ["gateway", "vault", "control"])
def test_no_core_of_a_role_that_crashes(lab, values, role):
    before, pid = cores(), lab.role_pid(role)
    cwd = Path(os.readlink(f"/proc/{pid}/cwd"))
    limits = Path(f"/proc/{pid}/limits").read_text()
    assert re.search(r"Max core file size +0 +0 ", limits), limits
    inside = set(os.listdir(cwd))
    os.kill(pid, signal.SIGSEGV)
    lab.wait(lambda: not Path(f"/proc/{pid}").exists(), 5, f"the {role} to die")
    assert cores() == before and set(os.listdir(cwd)) - inside == set()

    def back():
        try:
            return lab.role_pid(role) not in (0, pid)
        except (OSError, KeyError, AssertionError, http.client.HTTPException):
            return False
    lab.wait(back, 5, f"a new {role}")
    lab.wait(lambda: lab.sandboxes[0].curl("https://pinned.lab.test/bearer/again")[0] == 200, 5,
             "service")


def test_nothing_is_left_after_restarts(lab, values):
    """The roles were all started anew above: what they loaded is guarded too."""
    for role in ("gateway", "vault"):
        assert [h for h in memory.search(lab.role_pid(role), values.all()) if not h.guarded] == []
    assert memory.search(lab.role_pid("control"), values.all()) == []
    assert not holds(lab.log(), values)
