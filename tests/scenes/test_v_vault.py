# SPDX-License-Identifier: Apache-2.0
"""The vault under change, crash, theft of time and clumsy keys; traffic is the
witness of what it holds."""
import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import threading
import time

import pytest
from conftest import open_lab
from lab import BIN, run

API = "https://api.lab.test"


@pytest.fixture(scope="module")
def lab():
    with open_lab("v") as lab:
        yield lab


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\0", "\n\n"], ids=repr)
def test_case_38_value_with_a_line_end_is_refused_or_trimmed(lab, origin_seen, end):
    """The API stores what it is given, or refuses; the command leaves one line end out."""
    lab.credential("api-token", "the-value-before")
    for value in (f"ends-badly{end}", f"in the{end}middle", f"{end}begins-badly"):
        status, reply = lab.admin.call("PUT", "/v1/credentials/api-token",
                                       {"name": "api-token", "source": {"value": value}})
        assert status == 400 and "CR, LF, NUL" in str(reply) and "badly" not in str(reply)
    assert lab.sandboxes[0].curl(f"{API}/before")[0] == 200  # the old one stays
    assert "Bearer the-value-before" in str(origin_seen(path="/before")[-1]["headers"])
    r = run(BIN / "sallyport", "vault", "put", "api-token", "--socket", lab.admin.path,
            input=f"from-a-file{end}", check=False)
    if end in ("\n", "\r\n", "\r"):
        assert r.returncode == 0, r.stderr
        assert lab.sandboxes[0].curl(f"{API}/trimmed")[0] == 200
        headers = dict(origin_seen(path="/trimmed")[-1]["headers"])
        assert headers["Authorization"] == "Bearer from-a-file"
    else:
        assert r.returncode != 0 and "from-a-file" not in r.stderr, r.stderr


CLIENT = """
import http.client, ssl, sys, threading
context = ssl.create_default_context()
kept = http.client.HTTPSConnection('api.lab.test', timeout=10, context=context)
def ask(c, path):
    c.request('GET', path)
    r = c.getresponse(); r.read()
    return r.status
print('ready', flush=True)
for line in sys.stdin:
    path, out = line.strip(), []
    def fresh(i):
        c = http.client.HTTPSConnection('api.lab.test', timeout=10, context=context)
        out.append(ask(c, f'{path}/{i}')); c.close()
    threads = [threading.Thread(target=fresh, args=(i,)) for i in range(4)]
    [t.start() for t in threads]; [t.join() for t in threads]
    out.append(ask(kept, path + '/kept'))
    print(*out, flush=True)
"""


@contextlib.contextmanager
def client(sandbox):
    """ask(path): four new connections and a kept one; their statuses."""
    p = sandbox.popen("/usr/bin/python3", "-c", CLIENT, stdin=subprocess.PIPE,
                      stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "ready\n"

    def ask(path):
        p.stdin.write(path + "\n")
        p.stdin.flush()
        return set(p.stdout.readline().split())
    try:
        yield ask
    finally:
        p.stdin.close()
        p.wait(10)


def carried(origin_seen, prefix):
    """The credentials that requests below the path arrived with."""
    return {dict(r["headers"]).get("Authorization") for r in origin_seen()
            if r["path"].startswith(prefix)}


# -- changes -------------------------------------------------------------------

def test_new_value_is_in_force_when_the_call_returns(lab, sandbox, origin_seen):
    with client(sandbox) as ask:
        for i in range(25):
            lab.credential("api-token", f"value-{i}")
            assert ask(f"/turn/{i}") == {"200"}
            assert carried(origin_seen, f"/turn/{i}/") == {f"Bearer value-{i}"}


def test_new_and_removed_bindings_are_in_force_when_the_call_returns(lab, sandbox, origin_seen):
    lab.credential("api-token", "bound-value")
    binding = lab.admin.get("/v1/bindings/api")
    opened = [{"action": "allow", "target": "api.lab.test"}]
    with lab.policy(opened, inspect=["api.lab.test"]), client(sandbox) as ask:
        for i in range(10):
            lab.admin.call("DELETE", "/v1/bindings/api", expect=204)
            assert ask(f"/unbound/{i}") == {"200"}
            assert carried(origin_seen, f"/unbound/{i}/") == {None}
            lab.binding(binding)
            assert ask(f"/bound/{i}") == {"200"}
            assert carried(origin_seen, f"/bound/{i}/") == {"Bearer bound-value"}


def test_bindings_that_tie_are_refused_by_name(lab):
    status, reply = lab.admin.call("PUT", "/v1/bindings/extra", {
        "name": "extra", "match": {"hosts": ["api.lab.test"], "paths": ["/extra/*"]},
        "auth": {"type": "apiKey", "name": "X-Key", "credential": "api-token"}})
    assert status == 400 and '"api"' in reply["message"] and '"extra"' in reply["message"]


def test_patch_is_all_or_nothing_at_one_revision(lab, sandbox, origin_seen):
    before = lab.admin.get("/v1/vault")
    revision = before["revision"]
    add = {"credentials": {"add": [{"name": "p1", "source": {"value": "one"}},
                                   {"name": "p2", "source": {"value": "two"}}]},
           "bindings": {"add": [{"name": "pb", "match": {"hosts": ["pinned.lab.test"]},
                                 "auth": {"type": "customHeaders", "headers": [
                                     {"name": "X-1", "credential": "p1"},
                                     {"name": "X-2", "credential": "p2"}]}}]}}
    for stale in (revision - 1, revision + 1):
        status, reply = lab.admin.call("PATCH", "/v1/vault", {"expectedRevision": stale, **add})
        assert status == 409 and reply["code"] == "REVISION_CONFLICT", reply
        assert str(revision) in reply["message"]
    # one bad change among good ones
    bad = {"expectedRevision": revision, "credentials": {"add": add["credentials"]["add"] + [
        {"name": "p3", "source": {"value": "a\nb"}}]}}
    assert lab.admin.call("PATCH", "/v1/vault", bad)[0] == 400
    dangling = {"expectedRevision": revision, "bindings": add["bindings"]}
    assert lab.admin.call("PATCH", "/v1/vault", dangling)[0] == 400  # no such credentials
    assert lab.admin.get("/v1/vault") == before
    after = lab.admin.call("PATCH", "/v1/vault", {"expectedRevision": revision, **add}, expect=200)[1]
    assert after["revision"] == revision + 1
    assert {c["revision"] for c in after["credentials"] if c["name"] in ("p1", "p2")} == {revision + 1}
    assert sandbox.curl("https://pinned.lab.test/patched")[0] == 200
    headers = dict(origin_seen(path="/patched")[0]["headers"])
    assert (headers["X-1"], headers["X-2"]) == ("one", "two")
    assert lab.record(path="/patched")["revision"] == revision + 1


def test_credential_in_use_cannot_be_deleted_alone(lab):
    for method, path, body in (
            ("DELETE", "/v1/credentials/p1", None),
            ("PATCH", "/v1/vault", {"credentials": {"delete": ["p1", "p2"]}})):
        status, reply = lab.admin.call(method, path, body)
        assert status in (400, 409) and "pb" in reply["message"], (status, reply)
    lab.admin.call("PATCH", "/v1/vault", {"credentials": {"delete": ["p1", "p2"]},
                                          "bindings": {"delete": ["pb"]}}, expect=200)
    state = lab.admin.get("/v1/vault")
    assert not [c for c in state["credentials"] if c["name"].startswith("p")]
    assert lab.admin.call("DELETE", "/v1/credentials/p1")[0] == 404


def test_racing_patches_have_one_winner_each(lab):
    revision = lab.admin.get("/v1/vault")["revision"]
    results = []

    def one(i):
        status, _ = lab.admin.call("PATCH", "/v1/vault", {
            "expectedRevision": revision,
            "credentials": {"add": [{"name": f"race-{i}", "source": {"value": "x"}}]}})
        results.append((status, i))
    threads = [threading.Thread(target=one, args=(i,)) for i in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    winners = [i for status, i in results if status == 200]
    assert len(winners) == 1 and sorted({s for s, _ in results}) == [200, 409]
    state = lab.admin.get("/v1/vault")
    assert state["revision"] == revision + 1
    assert [c["name"] for c in state["credentials"] if c["name"].startswith("race-")] == [
        f"race-{winners[0]}"]
    lab.admin.call("DELETE", f"/v1/credentials/race-{winners[0]}", expect=204)


# -- crashes ---------------------------------------------------------------------

class Writer(threading.Thread):
    """Rotates api-token and adds credentials as fast as answers come."""

    def __init__(self, lab, tag):
        super().__init__()
        self.lab, self.tag, self.acknowledged, self.sent = lab, tag, [], 0
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.is_set():
            n, self.sent = self.sent, self.sent + 1
            try:
                status, reply = self.lab.admin.call("PATCH", "/v1/vault", {"credentials": {
                    "add": [{"name": f"{self.tag}-{n}", "source": {"value": f"v{n}"}}],
                    "replace": [{"name": "api-token", "source": {"value": f"{self.tag}-value-{n}"}}]}})
                if status == 200:
                    self.acknowledged.append((n, reply["revision"]))
            except (OSError, http.client.HTTPException):
                time.sleep(0.01)

    def check(self, lab, sandbox, origin_seen):
        """All that was acknowledged is there, as it was, and traffic has it."""
        state = {c["name"]: c["revision"] for c in lab.admin.get("/v1/vault")["credentials"]}
        assert len(self.acknowledged) >= 5
        for n, revision in self.acknowledged:
            assert state.get(f"{self.tag}-{n}") == revision, n
        newest = max(n for n, _ in self.acknowledged)
        unanswered = [n for n in range(newest, self.sent) if f"{self.tag}-{n}" in state]
        assert sandbox.curl(f"{API}/{self.tag}")[0] == 200
        [r] = origin_seen(path=f"/{self.tag}")
        # the last that was acknowledged, or one whose answer was lost
        assert dict(r["headers"])["Authorization"] == f"Bearer {self.tag}-value-{max(unanswered)}"
        lab.admin.call("PATCH", "/v1/vault", {"credentials": {
            "delete": [n for n in state if n.startswith(self.tag + "-")]}}, expect=200)


def served(lab):
    try:
        return lab.admin.get("/v1/status")["ready"] and lab.admin.get("/v1/vault")
    except (OSError, AssertionError, http.client.HTTPException):
        return False


@pytest.mark.parametrize("role", ["vault", "control", "gateway"])
def test_kill_during_writes_loses_nothing_acknowledged(lab, sandbox, origin_seen, role):
    writer = Writer(lab, role)
    writer.start()
    for i in range(6):
        time.sleep(0.05 + 0.037 * i)
        with contextlib.suppress(OSError, KeyError, AssertionError, http.client.HTTPException):
            os.kill(lab.role_pid(role), signal.SIGKILL)
        lab.wait(lambda: served(lab), 10, f"the {role} after kill {i}")
    writer.stopping.set()
    writer.join()
    lab.wait(lambda: served(lab), 10, "service")
    lab.wait(lambda: sandbox.curl(f"{API}/warm")[0] == 200, 5, "traffic")
    writer.check(lab, sandbox, origin_seen)


def kill_all(lab):
    """The power fails: every process of the daemon at once."""
    pids = [lab.role_pid(r) for r in ("gateway", "vault", "control")]
    lab.daemon.kill()
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    lab.daemon.wait(10)
    lab.daemon = None
    lab.wait(lambda: not [p for p in pids if os.path.exists(f"/proc/{p}")], 5, "the roles to end")


def test_kill_of_the_whole_daemon_loses_nothing_acknowledged(lab, sandbox, origin_seen):
    writer = Writer(lab, "whole")
    writer.start()
    time.sleep(0.5)
    kill_all(lab)
    assert sandbox.curl("--connect-timeout", "1", f"{API}/meanwhile")[0] == 0
    lab.start()
    writer.stopping.set()
    writer.join()
    lab.wait(lambda: sandbox.curl(f"{API}/warm")[0] == 200, 5, "traffic")
    writer.check(lab, sandbox, origin_seen)
    assert not origin_seen(path="/meanwhile")


def test_restart_keeps_everything(lab, sandbox, origin_seen):
    lab.credential("api-token", "kept-over-restart")
    token = lab.admin.call("POST", "/v1/tokens", {"name": "kept"}, expect=201)[1]["token"]

    def everything():
        return [lab.admin.get(p) for p in ("/v1/vault", "/v1/sandboxes", "/v1/policies/lab",
                                           "/v1/tokens", "/v1/ca")]
    before = everything()
    assert lab.stop() == 0
    lab.start()
    after = everything()
    for a in (before, after):
        a[2]["entry"].pop("generation")
    assert after == before and token not in str(after)
    assert sandbox.curl(f"{API}/restarted")[0] == 200  # the same CA is trusted, too
    assert dict(origin_seen(path="/restarted")[0]["headers"])["Authorization"] == \
        "Bearer kept-over-restart"
    lab.admin.call("DELETE", "/v1/tokens/kept", expect=204)


# -- keys and stores that are not what they should be --------------------------------

def start_in_vain(lab, seconds=15):
    """Starts a daemon that must not serve; what it said."""
    mark = len(lab.log())
    with open(lab.log_path, "ab") as log:
        p = subprocess.Popen(["ip", "netns", "exec", lab.gw, BIN / "sallyportd", "--config",
                              lab.config_path], stdout=log, stderr=log)
    try:
        assert p.wait(seconds) != 0
    finally:
        p.kill()
        p.wait()
    return lab.log()[mark:]


@contextlib.contextmanager
def stopped(lab):
    """Without a daemon; it serves again behind."""
    assert lab.stop() == 0
    try:
        yield
    finally:
        lab.start()


@contextlib.contextmanager
def put_back(contents):
    """Files as they were, whatever happens."""
    try:
        yield contents
    finally:
        for file, data in contents.items():
            file.unlink(missing_ok=True)
            file.touch(0o600)
            file.write_bytes(data)


def tool(lab, *args, **kw):
    return run(BIN / "sallyport-vault", *args, "--config", lab.config_path, check=False, **kw)


def test_wrong_key_is_said_and_nothing_served(lab, sandbox, origin_seen):
    key = lab.tmp / "vault.key"
    right = key.read_bytes()
    with stopped(lab), put_back({key: right}):
        for wrong, words in ((bytes(32), "is not the one"), (b"short", "found 5 bytes"),
                             (None, "No such file")):
            key.unlink()
            if wrong:
                key.write_bytes(wrong)
                key.chmod(0o600)
            said = start_in_vain(lab)
            assert "vault.key" in said and words in said, said
            assert right.hex() not in said
            assert sandbox.curl("--connect-timeout", "1", f"{API}/wrong")[0] == 0
            r = tool(lab, "list")
            assert r.returncode == 1 and "vault.key" in r.stderr, r.stderr
        # a key that everybody can read is none
        key.write_bytes(right)
        key.chmod(0o644)
        assert "vault.key" in start_in_vain(lab)
    assert sandbox.curl(f"{API}/right")[0] == 200
    assert not origin_seen(path="/wrong")


def test_store_of_the_past_is_never_served(lab, sandbox, origin_seen):
    lab.credential("api-token", "value-of-the-past")
    store = [f for f in (lab.state / "vault").iterdir() if f.name.startswith("data")]
    assert store
    with stopped(lab):
        for f in store:
            shutil.copy2(f, lab.tmp / ("past-" + f.name))
    lab.credential("api-token", "value-of-today")
    with stopped(lab), put_back({f: f.read_bytes() for f in store}) as today:
        for f in store:
            f.write_bytes((lab.tmp / ("past-" + f.name)).read_bytes())
        said = start_in_vain(lab)
        assert "an older copy was put back" in said, said
        assert "value-of-the-past" not in said
        assert sandbox.curl("--connect-timeout", "1", f"{API}/past")[0] == 0
        r = tool(lab, "verify")
        assert r.returncode == 1 and "rolled back" in r.stdout + r.stderr, r.stdout + r.stderr
        for args in (["list"], ["put", "x"], ["rotate-dek"]):
            assert tool(lab, *args, input="x").returncode == 1, args
        assert tool(lab, "repair").returncode == 1  # only with --yes
        for f, data in today.items():
            f.write_bytes(data)
        assert tool(lab, "verify").returncode == 0
    assert sandbox.curl(f"{API}/today")[0] == 200
    assert dict(origin_seen(path="/today")[0]["headers"])["Authorization"] == "Bearer value-of-today"
    assert not origin_seen(path="/past")


def test_operator_may_accept_the_past_and_only_he(lab, sandbox, origin_seen):
    lab.credential("api-token", "accepted-past")
    store = [f for f in (lab.state / "vault").iterdir() if f.name.startswith("data")]
    with stopped(lab):
        past = {f: f.read_bytes() for f in store}
    lab.credential("api-token", "lost-value")
    with stopped(lab):
        for f, data in past.items():
            f.write_bytes(data)
        r = tool(lab, "repair", "--yes")
        assert r.returncode == 0, r.stdout + r.stderr
        assert tool(lab, "verify").returncode == 0
    assert sandbox.curl(f"{API}/accepted")[0] == 200
    assert dict(origin_seen(path="/accepted")[0]["headers"])["Authorization"] == "Bearer accepted-past"


def test_damaged_record_is_reported_and_only_it_is_not_served(lab, sandbox, origin_seen):
    name = "damaged-credential-name"
    lab.credential(name, "x" * 900)
    lab.binding({"name": "damaged", "match": {"hosts": ["pinned.lab.test"]},
                 "auth": {"type": "bearer", "credential": name}})
    with stopped(lab):
        for f in (lab.state / "vault").iterdir():
            if not f.name.startswith("data"):
                continue
            data, at, hits = bytearray(f.read_bytes()), 0, 0
            while (at := data.find(name.encode(), at)) >= 0:
                data[at + len(name) + 500] ^= 1  # in the sealed value behind it
                at, hits = at + 1, hits + 1
            assert hits
            f.write_bytes(data)
        r = tool(lab, "verify")
        assert r.returncode == 1 and name in r.stdout, r.stdout + r.stderr
        assert "corrupt" in r.stdout
    status, body, _ = sandbox.curl("https://pinned.lab.test/damaged")
    assert status == 403 and "no_lease" in body, body
    assert sandbox.curl(f"{API}/sound")[0] == 200
    assert not origin_seen(path="/damaged")
    assert name in lab.log()
    status, reply = lab.admin.call("POST", "/v1/vault/verify")
    assert status != 200 or name in str(reply), reply
    # a new value heals it
    lab.credential(name, "healed")
    assert sandbox.curl("https://pinned.lab.test/healed")[0] == 200
    assert dict(origin_seen(path="/healed")[0]["headers"])["Authorization"] == "Bearer healed"
    lab.admin.call("PATCH", "/v1/vault", {"credentials": {"delete": [name]},
                                          "bindings": {"delete": ["damaged"]}}, expect=200)
    lab.admin.call("POST", "/v1/vault/verify", expect=200)


# -- the command line ---------------------------------------------------------------------

def sallyport(lab, *args, **kw):
    return run("ip", "netns", "exec", lab.gw, BIN / "sallyport", "vault", *args, "--config",
               lab.config_path, check=False, **kw)


def everything_works(lab, running):
    (lab.tmp / "value").write_text("from-a-file\n")
    assert sallyport(lab, "put", "cli-stdin", input="from-stdin\n").returncode == 0
    assert sallyport(lab, "put", "cli-file", f"@{lab.tmp / 'value'}").returncode == 0
    for bad in ("a\nb", "a\rb", "a\0b", ""):
        r = sallyport(lab, "put", "cli-bad", input=bad)
        assert r.returncode == 1 and "a\nb" not in r.stderr, (bad, r.stderr)
    r = sallyport(lab, "put", "cli-bad", "value-in-argv")
    assert r.returncode in (1, 2) and "value-in-argv" not in r.stderr, r.stderr
    listed = sallyport(lab, "list")
    assert listed.returncode == 0 and "cli-stdin" in listed.stdout and "cli-file" in listed.stdout
    assert "from-" not in listed.stdout and "cli-bad" not in listed.stdout
    assert sallyport(lab, "verify").returncode == 0
    assert sallyport(lab, "rotate-dek").returncode == 0
    r = sallyport(lab, "rm", "api-token")
    assert r.returncode == 1 and "binding" in r.stderr, r.stderr
    assert sallyport(lab, "rm", "cli-stdin").returncode == 0
    assert sallyport(lab, "rm", "cli-stdin").returncode == 1
    r = run(BIN / "sallyport-vault", "list", "--config", lab.config_path, check=False)
    assert r.returncode == (1 if running else 0), r.stderr


def test_cli_with_a_daemon(lab):
    everything_works(lab, running=True)
    assert sallyport(lab, "rm", "cli-file").returncode == 0


def test_cli_without_a_daemon(lab, sandbox, origin_seen):
    with stopped(lab):
        everything_works(lab, running=False)
        assert sallyport(lab, "put", "api-token", input="put-offline").returncode == 0
    assert sandbox.curl(f"{API}/offline")[0] == 200
    assert dict(origin_seen(path="/offline")[0]["headers"])["Authorization"] == "Bearer put-offline"
    assert "cli-file" in [c["name"] for c in lab.admin.get("/v1/vault")["credentials"]]


def test_new_key_for_the_same_vault(lab, sandbox):
    new = lab.tmp / "new.key"
    new.write_bytes(os.urandom(32))
    new.chmod(0o600)
    r = sallyport(lab, "rotate-kek", new)
    assert r.returncode == 1  # not while the daemon holds it
    with stopped(lab):
        assert sallyport(lab, "rotate-kek", new).returncode == 0
        assert "vault.key" in start_in_vain(lab)
        config = json.loads(lab.config_path.read_text())
        config["vault"] = {"keyFile": str(new)}
        lab.config_path.write_text(json.dumps(config))
    assert sandbox.curl(f"{API}/rekeyed")[0] == 200


def test_a_vault_of_its_own(lab, tmp_path):
    state, key = tmp_path / "state", tmp_path / "key"
    state.mkdir()
    args = ["--state", state, "--key-file", key]

    def vault(*words, **kw):
        return run(BIN / "sallyport", "vault", *words, *args, check=False, **kw)
    r = vault("init", "--generate-key")
    assert r.returncode == 0 and key.stat().st_mode & 0o777 == 0o600, r.stderr
    assert vault("init").returncode == 1  # there is one
