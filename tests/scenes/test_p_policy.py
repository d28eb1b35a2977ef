# SPDX-License-Identifier: Apache-2.0
"""Policies as operators write them: files, reloads, order, and that what explain
says is what happens."""
import contextlib
import json
import re
import subprocess
import time

import pytest
from conftest import open_lab
from lab import BIN, ORIGIN4, OTHER4, run

AT_ONCE = 1.0


@pytest.fixture(scope="module")
def lab():
    with open_lab("p") as lab:
        lab.admin.call("DELETE", "/v1/policies/lab", expect=204)
        yield lab


@pytest.fixture(autouse=True)
def only_ours(lab):
    """Each test begins with no policy at all."""
    yield
    for file in lab.policies.iterdir():
        file.unlink()
    for p in lab.admin.get("/v1/policies")["policies"]:
        if p["source"] == "api":
            lab.admin.call("DELETE", f"/v1/policies/{p['name']}", expect=204)
    lab.admin.call("POST", "/v1/policies/reload", expect=200)


def write(lab, name, text):
    """Atomically, as an editor or a deployment does."""
    (lab.policies / f".{name}.new").write_text(text)
    (lab.policies / f".{name}.new").rename(lab.policies / name)


def load(lab, **files):
    """Files by name (a_yaml is a.yaml), in force on return."""
    for name, text in files.items():
        write(lab, name.replace("_", "."), text)
    return lab.admin.call("POST", "/v1/policies/reload", expect=200)[1]


def reach(sandbox, host, path="/", scheme="http", method="GET", address=ORIGIN4):
    """The status, 0 for no answer; without asking DNS."""
    port = 443 if scheme == "https" else 80
    status, _, _ = sandbox.curl("-X", method, "--resolve", f"{host}:{port}:{address}",
                                "--max-time", "5", f"{scheme}://{host}{path}")
    return status


ALL = """
# everybody may
policies:
  - name: all          # a comment behind
    sandboxes: {ids: ["*"]}
    egress:
      # the plain one
      - {action: allow, target: plain.lab.test}
"""


REFUSING = """
policies:
  - name: refusing
    sandboxes: {ids: ["*"]}
    egress:
      - {action: deny, target: plain.lab.test}
      - {action: allow, target: pinned.lab.test, methods: [GET]}
"""

CONNECT = """
import socket
s = socket.create_connection(('192.0.0.8', 3128), 5)
s.sendall(b'CONNECT plain.lab.test:443 HTTP/1.1\\r\\nHost: plain.lab.test:443\\r\\n\\r\\n')
reply = b''
while not reply.endswith(b'}\\n'):
    reply += s.recv(65536)
print(reply.partition(b'\\r\\n\\r\\n')[2].decode())
"""


# -- files ---------------------------------------------------------------------

def test_files_are_seen_when_they_come_change_and_go(lab, sandbox):
    before = lab.admin.get("/v1/status")["policies"]
    assert before["count"] == 0 and reach(sandbox, "plain.lab.test") in (0, 403)
    write(lab, "all.yaml", ALL)
    lab.wait(lambda: reach(sandbox, "plain.lab.test") == 200, 3, "the new file")
    write(lab, "all.yaml", ALL.replace("plain", "pinned"))
    lab.wait(lambda: reach(sandbox, "pinned.lab.test") == 200, 3, "the changed file")
    assert reach(sandbox, "plain.lab.test") == 403
    (lab.policies / "all.yaml").unlink()
    lab.wait(lambda: reach(sandbox, "pinned.lab.test") == 403, 3, "the removal")
    # written in place, in pieces: at no time half a file is taken
    with open(lab.policies / "slow.yaml", "w") as f:
        for piece in (ALL[:60], ALL[60:]):
            f.write(piece)
            f.flush()
            time.sleep(0.1)
    lab.wait(lambda: reach(sandbox, "plain.lab.test") == 200, 3, "the file written in place")


def test_always_files_are_the_operators_overlays(lab, sandbox):
    """deny.always and allow.always of OpenSandbox's sidecar: in force as they
    come and go, before every policy, and named in refusals and explanations."""
    load(lab, a_yaml=ALL)
    assert reach(sandbox, "plain.lab.test") == 200 and reach(sandbox, "pinned.lab.test") == 403
    write(lab, "allow.always", "# for everybody\n\npinned.lab.test\nplain.lab.test\n")
    lab.wait(lambda: reach(sandbox, "pinned.lab.test") == 200, 3, "what is always allowed")
    write(lab, "deny.always", "plain.lab.test\n127.0.0.0/8\n::1\n")
    lab.wait(lambda: reach(sandbox, "plain.lab.test") == 403, 3, "what is always denied")
    assert reach(sandbox, "plain.lab.test") == 403  # the one before may have been cut
    assert lab.record(host="plain.lab.test", reason="policy")["ruleFile"] == "deny.always"
    # names are looked up as before, though every resolver is denied by address
    assert sandbox.python("import socket; print(socket.gethostbyname('pinned.lab.test'))"
                          ).stdout.strip() == ORIGIN4
    told = lab.admin.call("POST", "/v1/explain", {
        "sandbox": sandbox.id, "words": "connect plain.lab.test:80"}, expect=200)[1]
    assert told["verdict"] == "deny" and "deny.always:1" in json.dumps(told), told
    told = lab.admin.call("POST", "/v1/explain", {
        "sandbox": sandbox.id, "words": "connect pinned.lab.test:80"}, expect=200)[1]
    assert told["verdict"] == "allow" and "allow.always:3" in json.dumps(told), told
    # one line that is no target: nothing changes, and it is named
    write(lab, "deny.always", "pinned.lab.test\n*\n")
    status, reply = lab.admin.call("POST", "/v1/policies/reload")
    assert status == 400 and "deny.always:2" in reply["message"], reply
    assert reach(sandbox, "plain.lab.test") == 403 and reach(sandbox, "pinned.lab.test") == 200
    (lab.policies / "deny.always").unlink()
    (lab.policies / "allow.always").unlink()
    lab.wait(lambda: reach(sandbox, "pinned.lab.test") == 403, 3, "the end of both")
    assert reach(sandbox, "plain.lab.test") == 200


def test_json_and_yaml_side_by_side_in_order_of_names(lab, sandbox, neighbour):
    reply = load(lab, b_json=json.dumps({"policies": [{
        "name": "one", "sandboxes": {"ids": [sandbox.id]},
        "egress": [{"action": "allow", "target": "pinned.lab.test"}]}]}), c_yml=ALL)
    assert [(p["name"], p["file"].rsplit("/")[-1], p["line"]) for p in reply["policies"]] == [
        ("one", "b.json", 1), ("all", "c.yml", 4)]
    assert reach(sandbox, "pinned.lab.test") == 200 and reach(sandbox, "plain.lab.test") == 403
    assert reach(neighbour, "pinned.lab.test") == 403 and reach(neighbour, "plain.lab.test") == 200
    # what is no policy file is not read
    load(lab, README="deny: everything\n")
    assert reach(neighbour, "plain.lab.test") == 200


@pytest.mark.parametrize("text,line,words", [
    (ALL + "      - {action: allow, target: bad..name}\n", 9, ["bad..name", "expected"]),
    (ALL + "colour: red\n", 9, ["colour"]),
    (ALL.replace("egress", "egres"), 6, ["egres", "egress"]),
    (ALL.replace("allow", "permit"), 8, ["permit", "allow or deny"]),
    (ALL.replace("{ids", "{ids: [x], ids"), 5, ["ids"]),
    (ALL + "      - {action: allow, target: 10.0.0.1/8}\n", 9, ["10.0.0.0/8"]),
    (ALL + "\t- x", 9, []), ("", 0, []), ("policies: [", 0, []),
    (ALL + ALL.replace("policies:\n", "").replace("# everybody may\n", ""), 0, ["all"]),
])
def test_bad_file_changes_nothing_and_is_named(lab, sandbox, text, line, words):
    load(lab, a_yaml=ALL)
    generation = lab.admin.get("/v1/status")["policies"]["generation"]
    # a good change beside it is not taken either
    write(lab, "a.yaml", ALL.replace("plain", "pinned"))
    write(lab, "b.yaml", text)
    status, reply = lab.admin.call("POST", "/v1/policies/reload")
    assert status == 400 and reply["code"] == "POLICY_INVALID"
    message = reply["message"]
    assert "b.yaml" in message and all(w in message for w in words), message
    if line:
        assert f"b.yaml:{line}:" in message, message
    state = lab.admin.get("/v1/status")["policies"]
    assert state["generation"] == generation and state["error"]["file"].endswith("b.yaml")
    assert not line or state["error"]["line"] == line
    assert "the policies stay as they were" in lab.log() and message in lab.log()
    assert reach(sandbox, "plain.lab.test") == 200 and reach(sandbox, "pinned.lab.test") == 403
    (lab.policies / "b.yaml").unlink()
    lab.admin.call("POST", "/v1/policies/reload", expect=200)
    assert lab.admin.get("/v1/status")["policies"]["error"] is None
    assert reach(sandbox, "pinned.lab.test") == 200


def test_daemon_that_starts_with_a_bad_file_allows_nothing(lab, sandbox):
    load(lab, a_yaml=ALL)
    write(lab, "b.yaml", "deny: [")
    assert lab.stop() == 0
    lab.start()
    assert lab.admin.get("/v1/status")["policies"]["error"]["file"].endswith("b.yaml")
    assert reach(sandbox, "plain.lab.test") in (0, 403)
    (lab.policies / "b.yaml").unlink()
    lab.wait(lambda: reach(sandbox, "plain.lab.test") == 200, 3, "the repaired folder")


# -- who, what -----------------------------------------------------------------

def test_labels_choose_and_a_new_label_holds_at_once(lab, sandbox, neighbour):
    load(lab, a_yaml="""
policies:
  - name: red
    sandboxes: {labels: {team: red, kind: build}}
    egress: [{action: allow, target: plain.lab.test}]
  - name: rest
    sandboxes: {labels: {team: lab}}
    egress: [{action: allow, target: pinned.lab.test}]
""")
    assert reach(sandbox, "plain.lab.test") == 403 and reach(sandbox, "pinned.lab.test") == 200
    for labels, policy in (({"team": "red", "kind": "build"}, "red"), ({"team": "red"}, None),
                           ({"team": "lab", "kind": "build"}, "rest")):
        reply = lab.admin.call("PUT", f"/v1/sandboxes/{sandbox.id}", {
            "id": sandbox.id, "interface": sandbox.iface, "addresses": [sandbox.v4, sandbox.v6],
            "labels": labels}, expect=200)[1]
        assert reply["policy"] == policy
        assert (reach(sandbox, "plain.lab.test") == 200) == (policy == "red")
        assert (reach(sandbox, "pinned.lab.test") == 200) == (policy == "rest")
    assert reach(neighbour, "pinned.lab.test") == 200


def test_operator_lists_stand_before_every_policy(lab, sandbox, neighbour):
    load(lab, a_yaml="""
deny:
  - plain.lab.test
  - {target: limited.lab.test, methods: [POST]}
allow: [pinned.lab.test]
policies:
  - name: one
    sandboxes: {ids: [%s]}
    egress:
      - {action: allow, target: plain.lab.test}
      - {action: deny, target: pinned.lab.test}
      - {action: allow, target: limited.lab.test}
""" % sandbox.id)
    assert reach(sandbox, "plain.lab.test") == 403
    assert reach(sandbox, "pinned.lab.test") == 200
    assert reach(sandbox, "limited.lab.test") == 200
    assert reach(sandbox, "limited.lab.test", method="POST") == 403
    record = lab.record(host="plain.lab.test", verdict="deny")
    assert record["ruleFile"].endswith("a.yaml") and record["ruleLine"] == 3
    assert reach(neighbour, "pinned.lab.test") in (0, 403)  # it has no policy


def test_address_rules_deny_what_names_allow(lab, sandbox):
    rules = """
policies:
  - name: all
    sandboxes: {ids: ["*"]}
    egress:
      - {action: allow, target: "*.lab.test"}
      - {action: deny, target: 10.212.2.3}
"""
    load(lab, a_yaml=rules)
    assert reach(sandbox, "plain.lab.test") == 200
    assert reach(sandbox, "evil.lab.test", address=OTHER4) == 403
    load(lab, a_yaml=rules.replace("10.212.2.3", "10.212.2.0/24, ports: [443]"))
    assert reach(sandbox, "evil.lab.test", address=OTHER4) == 200
    assert reach(sandbox, "evil.lab.test", address=OTHER4, scheme="https") == 0


def test_first_rule_that_matches_decides(lab, sandbox):
    load(lab, a_yaml="""
policies:
  - name: all
    sandboxes: {ids: ["*"]}
    defaultAction: allow
    egress:
      - {action: deny, target: plain.lab.test, paths: ["/a/b/*"]}
      - {action: allow, target: plain.lab.test, paths: ["/a/*"]}
      - {action: deny, target: plain.lab.test, paths: ["/*"]}
      - {action: deny, target: "*.sub.lab.test"}
""")
    for path, status in (("/a/x", 200), ("/a/b/x", 403), ("/a/b", 200), ("/c", 403), ("/", 403)):
        assert reach(sandbox, "plain.lab.test", path) == status, path
    assert reach(sandbox, "pinned.lab.test") == 200  # by default
    assert reach(sandbox, "deep.sub.lab.test") == 403


def test_ports(lab, sandbox):
    text = """
policies:
  - name: all
    sandboxes: {ids: ["*"]}
    inspect: [plain.lab.test]
    egress: [{action: allow, target: plain.lab.test, ports: %s}]
"""
    for ports, http, https in (("[443]", 403, 200), ("[80]", 200, 0), ('["79-81", "440-450"]', 200, 200),
                               ("[8080]", 403, 0)):
        load(lab, a_yaml=text % ports)
        assert reach(sandbox, "plain.lab.test") == http, ports
        assert reach(sandbox, "plain.lab.test", scheme="https") == https, ports


def test_inspect_and_passthrough(lab, sandbox, origin_seen):
    text = """
policies:
  - name: all
    sandboxes: {ids: ["*"]}
    egress: [{action: allow, target: plain.lab.test}, {action: allow, target: api.lab.test}]
    %s
"""
    def issuer(host):
        r = sandbox.run("openssl", "s_client", "-connect", f"{ORIGIN4}:443", "-servername", host, input="")
        return "node" if "Sallyport" in r.stdout else "origin" if "lab origin CA" in r.stdout else None

    load(lab, a_yaml=text % "")
    assert (issuer("plain.lab.test"), issuer("api.lab.test")) == ("origin", "node")
    load(lab, a_yaml=text % 'inspect: ["*.lab.test"]')
    assert issuer("plain.lab.test") == "node"
    assert reach(sandbox, "plain.lab.test", "/seen", "https") == 200
    assert lab.record(host="plain.lab.test", path="/seen")["inspected"]
    # never opened, whatever is bound: the client's own TLS, and no credential
    load(lab, a_yaml=text % 'passthrough: [api.lab.test]')
    assert issuer("api.lab.test") == "origin"
    status, _, err = sandbox.curl("--cacert", lab.origin_ca, "https://api.lab.test/unopened")
    assert status == 200, err
    assert "Authorization" not in dict(origin_seen(path="/unopened")[0]["headers"])
    load(lab, a_yaml=text % 'inspect: [api.lab.test]\n    passthrough: ["*.lab.test"]')
    assert (issuer("plain.lab.test"), issuer("api.lab.test")) == ("origin", "node")


# -- in force when the call returns ---------------------------------------------

MANY = """
import socket, sys, threading
def one(out, i, host):
    try:
        s = socket.create_connection((sys.argv[1], 80), timeout=5)
        s.sendall(f'GET / HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n'.encode())
        out[i] = s.recv(12)[9:].decode() or '-'
        s.close()
    except OSError:
        out[i] = '-'
print('ready', flush=True)
for line in sys.stdin:
    out = [None] * 8
    threads = [threading.Thread(target=one, args=(out, i, line.strip())) for i in range(8)]
    [t.start() for t in threads]; [t.join() for t in threads]
    print(' '.join(out), flush=True)
"""


@contextlib.contextmanager
def eight(sandbox):
    """ask(host): what eight connections at once, over all loops, are told."""
    p = sandbox.popen("/usr/bin/python3", "-c", MANY, ORIGIN4, stdin=subprocess.PIPE,
                      stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "ready\n"

    def ask(host):
        p.stdin.write(host + "\n")
        p.stdin.flush()
        return set(p.stdout.readline().split())
    try:
        yield ask
    finally:
        p.stdin.close()
        p.wait(10)


def test_change_holds_in_every_loop_when_the_call_returns(lab, sandbox):
    assert lab.admin.get("/v1/status")["gateway"]["loops"] >= 2
    policy = {"name": "flip", "sandboxes": {"ids": [sandbox.id]}}
    allow = policy | {"egress": [{"action": "allow", "target": "plain.lab.test"}]}
    with eight(sandbox) as ask:
        for i in range(50):
            lab.put_policy("flip", allow)
            assert ask("plain.lab.test") == {"200"}, i
            lab.put_policy("flip", policy)
            assert ask("plain.lab.test") == {"403"}, i


def test_reload_and_registration_hold_when_the_call_returns(lab, sandbox):
    with eight(sandbox) as ask:
        for i in range(10):
            load(lab, a_yaml=ALL)
            assert ask("plain.lab.test") == {"200"}, i
            load(lab, a_yaml=ALL.replace("plain", "pinned"))
            assert ask("plain.lab.test") == {"403"}, i
        load(lab, a_yaml=ALL)
        for i in range(10):
            lab.admin.call("DELETE", f"/v1/sandboxes/{sandbox.id}", expect=204)
            assert ask("plain.lab.test") == {"-"}, i
            lab.register(sandbox, team="lab")
            assert ask("plain.lab.test") == {"200"}, i


# -- what is open already -----------------------------------------------------------

TUNNEL = """
import socket, ssl, sys
host, ca, path = sys.argv[1:4]
s = ssl.create_default_context(cafile=ca).wrap_socket(
    socket.create_connection((host, 443), timeout=20), server_hostname=host)
upgrade = 'Upgrade: lab-echo\\r\\nConnection: Upgrade\\r\\n' if path == '/upgrade' else ''
s.sendall(f'GET {path} HTTP/1.1\\r\\nHost: {host}\\r\\n{upgrade}\\r\\n'.encode())
assert s.recv(65536)
print('open', flush=True)
for line in sys.stdin:
    try:
        if path == '/upgrade':
            s.sendall(line.encode())
        else:
            s.sendall(f'GET / HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n'.encode())
        data = s.recv(65536)
        print(data.split(b'\\r\\n')[0].decode().strip() if data else 'closed', flush=True)
    except (OSError, ssl.SSLError) as e:
        print('cut', flush=True)
"""


@contextlib.contextmanager
def tunnel(sandbox, host, ca, path="/"):
    """say(): one more request on a connection that stays open, and its answer."""
    p = sandbox.popen("/usr/bin/python3", "-c", TUNNEL, host, ca, path, stdin=subprocess.PIPE,
                      stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "open\n"

    def say():
        p.stdin.write("again\n")
        p.stdin.flush()
        return p.stdout.readline().strip()
    try:
        yield say
    finally:
        p.stdin.close()
        p.wait(10)


def test_new_denial_cuts_what_is_open_and_nothing_else(lab, sandbox):
    bundle = sandbox.env()["SSL_CERT_FILE"]
    rules = """
policies:
  - name: all
    sandboxes: {ids: ["*"]}
    egress:
      - {action: %s, target: plain.lab.test}
      - {action: %s, target: api.lab.test}
      - {action: allow, target: pinned.lab.test}
"""
    load(lab, a_yaml=rules % ("allow", "allow"))
    with tunnel(sandbox, "plain.lab.test", str(lab.origin_ca)) as spliced, \
            tunnel(sandbox, "pinned.lab.test", str(lab.origin_ca)) as other, \
            tunnel(sandbox, "api.lab.test", bundle, "/upgrade") as upgraded, \
            tunnel(sandbox, "api.lab.test", bundle) as kept:
        download = sandbox.popen("curl", "-sS", "--limit-rate", "1M", "-o", "/dev/null",
                                 "https://api.lab.test/big/100000000")
        time.sleep(0.3)
        for say in (spliced, other, kept):
            assert say().startswith("HTTP/1.1 200"), say
        assert upgraded() == "again"
        # a change that takes nothing away leaves all of them
        load(lab, a_yaml=rules % ("allow", "allow") + "      - {action: allow, target: short.lab.test}\n")
        assert spliced().startswith("HTTP/1.1 200") and upgraded() == "again"
        start = time.monotonic()
        load(lab, a_yaml=rules % ("deny", "deny"))
        lab.wait(lambda: lab.records(path="/big/100000000", reason="cut"), 5, "the record of the cut")
        assert time.monotonic() - start < AT_ONCE
        assert download.wait(30) in (18, 56)  # after what its own kernel still held
        assert spliced() in ("closed", "cut") and upgraded() in ("closed", "cut")
        assert kept() in ("closed", "cut")
        assert other().startswith("HTTP/1.1 200")
    assert lab.record(kind="tunnel", host="plain.lab.test", reason="cut")
    assert lab.record(kind="http", path="/big/100000000", reason="cut")


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_new_denial_of_a_path_cuts_what_is_under_way_there(lab, sandbox, origin_seen, version):
    """The host stays allowed, and so do the connection and what else runs."""
    bundle = sandbox.env()["SSL_CERT_FILE"]
    rules = """
policies:
  - name: all
    sandboxes: {ids: ["*"]}
    egress:
      - {action: allow, target: api.lab.test, paths: ["/", "/slow/*"%s]}
"""
    def curl(path):
        return sandbox.popen("curl", "-sS", version, "--limit-rate", "1M", "-w", "%{http_code}", "-o",
                             "/dev/null", f"https://api.lab.test{path}", stdout=subprocess.PIPE, text=True)
    load(lab, a_yaml=rules % ', "/upgrade", "/big/*", "/slow/*"')
    with tunnel(sandbox, "api.lab.test", bundle, "/upgrade") as upgraded, \
            tunnel(sandbox, "api.lab.test", bundle) as kept:
        download, other = curl("/big/100000000"), curl("/big/100000001")
        for path in ("/big/100000000", "/big/100000001"):
            lab.wait(lambda: origin_seen(path=path), 10, path)
        assert kept() == "HTTP/1.1 200 OK" and upgraded() == "again"
        load(lab, a_yaml=rules % ', "/big/100000001"')
        record = lab.record(kind="http", path="/big/100000000", reason="cut")
        assert upgraded() in ("closed", "cut") and kept() == "HTTP/1.1 200 OK"
        assert download.wait(30) in (18, 56, 92)
        assert other.poll() is None
        other.kill()
        other.wait()
    assert record["verdict"] == "deny" and record["decidedBy"] == "default action", record
    assert "denied by the default action of policy all" in record["detail"]
    assert lab.record(path="/upgrade", reason="cut")


def test_a_request_that_is_cut_is_told_the_rule_that_denies_it(lab, sandbox, origin_seen):
    """Not the one that had allowed it."""
    rules = """
policies:
  - name: all
    sandboxes: {ids: ["*"]}
    egress:
%s      - {action: allow, target: api.lab.test}
"""
    load(lab, a_yaml=rules % "")
    p = sandbox.popen("curl", "-sS", "https://api.lab.test/slow/20", stdout=subprocess.PIPE, text=True)
    lab.wait(lambda: origin_seen(path="/slow/20"), 10, "the request")
    load(lab, a_yaml=rules % "      - {action: deny, target: api.lab.test}\n")
    said = json.loads(p.communicate(timeout=10)[0])
    assert said["reason"] == "cut" and said["rule"] == "deny api.lab.test", said
    assert "a change of policy ended it, denied by rule 1 of policy all (deny api.lab.test" in said["message"]
    record = lab.record(kind="http", reason="cut")
    assert (record["rule"], record["ruleFile"], record["status"]) == ("deny api.lab.test", "a.yaml", 403), record


def test_kept_connection_is_decided_anew_for_every_request(lab, sandbox, origin_seen):
    rules = """
policies:
  - name: all
    sandboxes: {ids: ["*"]}
    egress: [{action: allow, target: limited.lab.test, paths: ["%s"]}]
"""
    load(lab, a_yaml=rules % "/")
    with tunnel(sandbox, "limited.lab.test", sandbox.env()["SSL_CERT_FILE"]) as say:
        assert say() == "HTTP/1.1 200 OK"
        load(lab, a_yaml=rules % "/elsewhere")
        assert say() == "HTTP/1.1 403 Forbidden"
        load(lab, a_yaml=rules % "/")
        assert say() == "HTTP/1.1 200 OK"
    assert len(origin_seen(path="/")) == 3


# -- explain -------------------------------------------------------------------------

EXPLAINED = """
deny: [{target: pinned.lab.test, methods: [DELETE]}]
policies:
  - name: all
    sandboxes: {ids: ["sandbox-*"]}
    egress:
      - {action: allow, target: limited.lab.test, methods: [GET], paths: ["/ok/*"]}
      - {action: allow, target: "*.sub.lab.test", ports: [443]}
      - {action: deny, target: plain.lab.test, paths: ["/no*"]}
      - {action: allow, target: plain.lab.test}
      - {action: allow, target: pinned.lab.test}
      - {action: allow, target: api.lab.test}
    inspect: ["*.lab.test"]
"""


@pytest.mark.parametrize("method,url", [
    ("GET", "https://limited.lab.test/ok/1"), ("POST", "https://limited.lab.test/ok/1"),
    ("GET", "https://limited.lab.test/no"), ("GET", "https://deep.sub.lab.test/"),
    ("GET", "http://deep.sub.lab.test/"), ("GET", "http://plain.lab.test/no-more"),
    ("GET", "https://plain.lab.test/yes"), ("DELETE", "https://pinned.lab.test/"),
    ("GET", "https://pinned.lab.test/"), ("GET", "https://api.lab.test/v1"),
    ("TRACE", "https://api.lab.test/v1"), ("GET", "http://api.lab.test/v1"),
    ("GET", "https://limited.lab.test/ok/%2e%2e/no"), ("GET", "http://unknown.lab.test/")])
def test_explain_says_what_happens(lab, sandbox, method, url):
    if lab.admin.get("/v1/status")["policies"]["count"] == 0:
        load(lab, a_yaml=EXPLAINED)
    said = lab.admin.call("POST", "/v1/explain", {"sandbox": sandbox.id, "url": url, "method": method},
                          expect=200)[1]
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")

    def of_this_kind():
        return [r for r in lab.records(host=host, kind="http") if r["method"] == method]

    former = len(of_this_kind())
    status = reach(sandbox, host, "/" + path, scheme, method)
    assert (said["verdict"] == "allow") == (status == 200), (said, status)
    record = lab.wait(lambda: of_this_kind()[former:], 5, "the record")[0]
    assert record["verdict"] == said["verdict"]
    assert record["policy"] == said["policy"] and record["decidedBy"] == said["source"]
    assert record.get("rule", "") == said["rule"]
    assert record["ruleFile"] == said["file"] and record["ruleLine"] == said["line"]
    injected = record.get("binding") if record.get("injected") else None
    assert injected == (said["binding"] if said["verdict"] == "allow" else None), (record, said)
    cli = run(BIN / "sallyport", "policy", "explain", "--socket", lab.admin.path, "--sandbox",
              sandbox.id, url, method, check=False)
    assert cli.returncode == (0 if status == 200 else 1) and said["sentence"] in cli.stdout
    offline = run(BIN / "sallyport", "policy", "explain", "--file", lab.policies, "--sandbox",
                  sandbox.id, url, method, check=False)
    assert offline.returncode == cli.returncode
    assert offline.stdout.split(":", 1)[1].strip() == said["sentence"]


@pytest.mark.parametrize("words,verdict,text", [
    ("name pinned.lab.test", "allow", "allowed by rule 1"),
    ("name dns.quad9.net", "deny", "resolver of others"),
    ("connect pinned.lab.test:853", "deny", "resolver of others"),
    ("connect 1.1.1.1:443", "deny", "resolver of others"),
    ("connect udp 203.0.113.9:7000", "allow", "allowed by rule 2"),
    ("connect udp 203.0.113.9:443", "deny", "default action"),
    ("connect icmp 203.0.113.9", "allow", "default action"),
    ("connect udp pinned.lab.test:9 at 203.0.113.9", "allow", "default action"),
    ("POST https://pinned.lab.test/dns-query", "deny", "resolver of others")])
def test_explain_says_the_same_of_flows_and_resolvers(lab, sandbox, words, verdict, text):
    """The API, the command line with a daemon, and without one."""
    load(lab, a_yaml="""
policies:
  - name: all
    sandboxes: {ids: ["sandbox-*"]}
    defaultAction: allow
    egress:
      - {action: allow, target: "*.lab.test"}
      - {action: allow, target: 203.0.113.0/24, protocol: udp, ports: [7000]}
""")
    said = lab.admin.call("POST", "/v1/explain", {"sandbox": sandbox.id, "words": words}, expect=200)[1]
    assert said["verdict"] == verdict and text in said["sentence"], said
    ask = words.split()
    if "://" in words:
        ask.reverse()  # URL, then method
    for where in (("--socket", lab.admin.path), ("--file", lab.policies)):
        r = run(BIN / "sallyport", "policy", "explain", *where, "--sandbox", sandbox.id, *ask, check=False)
        assert r.returncode == (0 if verdict == "allow" else 1), r.stderr
        assert r.stdout.split(": ", 1)[1].strip() == said["sentence"], (where, r.stdout)
    r = run(BIN / "sallyport", "policy", "explain", "--file", lab.policies, "--allow-foreign-resolvers",
            "--sandbox", sandbox.id, *ask, check=False)
    assert ("resolver of others" in r.stdout) is False, r.stdout


# -- the command line -------------------------------------------------------------------

def sallyport(lab, *args, **kw):
    return run(BIN / "sallyport", *args, "--socket", lab.admin.path, check=False, **kw)


def test_cli_checks_files(lab, tmp_path):
    (tmp_path / "good.yaml").write_text(ALL)
    r = run(BIN / "sallyport", "policy", "check", tmp_path / "good.yaml")
    assert r.returncode == 0
    (tmp_path / "bad.yaml").write_text(ALL.replace("allow", "permit"))
    for what in (tmp_path, tmp_path / "bad.yaml"):
        r = run(BIN / "sallyport", "policy", "check", what, check=False)
        assert r.returncode == 1 and "bad.yaml:8:" in r.stderr and "permit" in r.stderr, r.stderr
    r = run(BIN / "sallyport", "policy", "check", tmp_path / "missing.yaml", check=False)
    assert r.returncode == 1 and "missing.yaml" in r.stderr


def test_cli_runs_case_files(tmp_path):
    case = ("--- policy p.yaml\n" + ALL.lstrip("\n") + "--- ask all\nconnect plain.lab.test:443\n"
            "  allow: allowed by rule 1 of policy all (allow plain.lab.test, p.yaml:7)\n")
    (tmp_path / "good.case").write_text(case)
    r = run(BIN / "sallyport", "policy", "test", tmp_path / "good.case", check=False)
    assert r.returncode == 0, r.stdout + r.stderr
    (tmp_path / "bad.case").write_text(case.replace("  allow:", "  deny:"))
    r = run(BIN / "sallyport", "policy", "test", tmp_path / "bad.case", check=False)
    assert r.returncode == 1 and "bad.case" in r.stdout + r.stderr


def test_cli_puts_lists_and_removes(lab, sandbox, tmp_path):
    (tmp_path / "all.yaml").write_text(ALL)
    assert sallyport(lab, "policy", "put", tmp_path / "all.yaml").returncode == 0
    assert reach(sandbox, "plain.lab.test") == 200
    listed = sallyport(lab, "policy", "list").stdout
    assert "all" in listed and "api" in listed
    assert sallyport(lab, "policy", "rm", "all").returncode == 0
    assert reach(sandbox, "plain.lab.test") in (0, 403)
    write(lab, "file.yaml", ALL)
    assert sallyport(lab, "policy", "reload").returncode == 0
    assert reach(sandbox, "plain.lab.test") == 200
    r = sallyport(lab, "policy", "rm", "all")
    assert r.returncode == 1 and "file.yaml" in r.stderr, r.stderr
    write(lab, "file.yaml", "nonsense")
    r = sallyport(lab, "policy", "reload")
    assert r.returncode == 1 and "file.yaml" in r.stderr


# -- refusals -------------------------------------------------------------------

def refused(sandbox, url, *more):
    """The refusal's type and body."""
    host = url.split("/")[2]
    port = 443 if url.startswith("https") else 80
    status, body, _ = sandbox.curl("--resolve", f"{host}:{port}:{ORIGIN4}", "-D",
                                   f"/tmp/{sandbox.id}-head", *more, url)
    assert status == 403, (status, body)
    head = run("cat", f"/tmp/{sandbox.id}-head").stdout.lower()
    assert "sallyport-denied: policy" in head, head
    return re.search(r"content-type: ([^\r\n]*)", head).group(1), body


@pytest.mark.parametrize("way", ["http", "https-1", "https-2", "connect"])
def test_refusals_name_policy_and_rule(lab, sandbox, way):
    """Whatever carried the request: policy, rule, and where it is written, as
    members and in one plain sentence."""
    load(lab, r_yaml=REFUSING)
    if way == "connect":
        body = sandbox.python(CONNECT).stdout
        what, rule, member = "CONNECT plain.lab.test:443", "rule 1", "deny plain.lab.test"
    elif way == "http":
        kind, body = refused(sandbox, "http://plain.lab.test/x?y")
        what, rule, member = "GET plain.lab.test:80", "rule 1", "deny plain.lab.test"
    else:
        kind, body = refused(sandbox, "https://pinned.lab.test/", "-X", "DELETE",
                             "--http1.1" if way == "https-1" else "--http2")
        what, rule, member = "DELETE pinned.lab.test:443", "the default action", None
    if way != "connect":
        assert kind == "application/json"
    told = json.loads(body)
    assert told["error"] == "denied" and told["reason"] == "policy"
    assert told["policy"] == "refusing" and told.get("rule") == member, told
    assert told["message"].startswith(f"{what} was refused: denied by {rule} of policy refusing ("), told
    assert "r.yaml:" in told["message"] and told["hint"]


def test_a_refusal_is_text_for_who_reads_it(lab, sandbox):
    load(lab, r_yaml=REFUSING)
    for more in (["-H", "Accept: text/plain"], ["-H", "Accept: text/html,*/*;q=0.8", "--http1.1"]):
        kind, body = refused(sandbox, "http://plain.lab.test/", *more)
        assert kind == "text/plain; charset=utf-8"
        assert re.match(r"GET plain.lab.test:80 was refused: denied by rule 1 of policy refusing "
                        r"\(deny plain.lab.test, r.yaml:6\)\nask the operator", body), body
    kind, body = refused(sandbox, "https://pinned.lab.test/", "-d", "x", "--http2", "-H", "Accept: text/plain")
    assert kind == "text/plain; charset=utf-8" and body.startswith("POST pinned.lab.test:443")
