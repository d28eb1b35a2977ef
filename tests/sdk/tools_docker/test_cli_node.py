# SPDX-License-Identifier: Apache-2.0
"""The official command line with a whole node: life, policy, vault, ways in"""
import json
import urllib.error
import urllib.request

import pytest
from conftest import API, PLAIN, received, until
from osb import osb, told


def create(*args):
    return told("sandbox", "create", "--resource", "memory=256Mi", "-t", "10m", *args)["id"]


@pytest.fixture(scope="module")
def box(tmp_path_factory):
    policy = tmp_path_factory.mktemp("policy") / "policy.json"
    policy.write_text(json.dumps({"defaultAction": "deny", "egress": [
        {"action": "allow", "target": API}]}))
    made = create("--image", "tests:local", "-m", "case=osb", "-e", "GREETING=a b",
                  "--network-policy-file", str(policy), "--credential-proxy")
    yield made
    osb("sandbox", "kill", made)


def run(box, *command):
    return osb("command", "run", box, "-o", "raw", "--", *command).strip()


def curl(box, url):
    return run(box, "sh", "-c", f"curl -s --max-time 10 -o /dev/null -w '%{{http_code}}' {url}; true")


def test_seen(box):
    got = told("sandbox", "get", box)
    assert got["status"]["state"] == "Running" and got["metadata"] == {"case": "osb"}
    assert [s["id"] for s in told("sandbox", "list", "-m", "case=osb", "-s", "Running")["items"]] \
        == [box]
    assert told("sandbox", "list", "-m", "case=osb", "-s", "Paused")["items"] == []
    assert run(box, "sh", "-c", "echo $GREETING") == "a b"
    assert told("sandbox", "health", box)["healthy"] is True
    assert told("sandbox", "metrics", box)["memory_total_in_mib"] > 0


def test_renewed_paused_resumed(box):
    before = told("sandbox", "get", box)["expires_at"]
    osb("sandbox", "renew", box, "-t", "2h")
    assert told("sandbox", "get", box)["expires_at"] > before
    osb("sandbox", "pause", box)
    until(lambda: told("sandbox", "get", box)["status"]["state"] == "Paused")
    osb("sandbox", "resume", box)
    assert told("sandbox", "get", box)["status"]["state"] == "Running"
    assert run(box, "echo", "again") == "again"


def test_egress(box):
    at = f"/{box}"
    assert told("egress", "get", box)["egress"] == [{"action": "allow", "target": API}]
    assert curl(box, f"http://{API}{at}/a") == "200"
    assert curl(box, f"http://{PLAIN}{at}/b") != "200"
    osb("egress", "patch", box, "--rule", f"allow={PLAIN}")
    assert curl(box, f"http://{PLAIN}{at}/c") == "200"
    assert [len(received(f"{at}/{n}")) for n in "abc"] == [1, 0, 1]


def test_vault(box, tmp_path):
    def with_file(verb, payload):
        file = tmp_path / "payload.json"
        file.write_text(json.dumps(payload))
        return told("credential-vault", verb, box, "--file", str(file))

    def token(name):
        assert curl(box, f"https://{API}/{box}/{name}") == "200"
        return received(f"/{box}/{name}")[-1].get("authorization")

    state = with_file("create", {
        "credentials": [{"name": "key", "source": {"type": "inline", "value": "osb-1-of-the-lab"}}],
        "bindings": [{"name": "api", "match": {"hosts": [API], "schemes": ["https"]},
                      "auth": {"type": "bearer", "credential": "key"}}]})
    assert state["revision"] == 1 and "of-the-lab" not in json.dumps(state)
    assert token("created") == "Bearer osb-1-of-the-lab"
    assert told("credential-vault", "binding", "get", box, "api")["auth"]["type"] == "bearer"
    assert [c["name"] for c in told("credential-vault", "credential", "list", box)] == ["key"]
    with_file("patch", {"expectedRevision": 1, "credentials": {"replace": [
        {"name": "key", "source": {"type": "inline", "value": "osb-2-of-the-lab"}}]}})
    assert token("patched") == "Bearer osb-2-of-the-lab"
    assert told("credential-vault", "get", box)["revision"] == 2
    osb("credential-vault", "delete", box)
    osb("credential-vault", "get", box, ok=False)


def test_ways_in(box):
    execd = told("sandbox", "endpoint", box, "-p", "44772")
    url = f"http://{execd['endpoint']}/ping"
    assert urllib.request.urlopen(
        urllib.request.Request(url, headers=execd["headers"]), timeout=20).status == 200
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(url, timeout=20)
    assert refused.value.code == 401
    assert "through" in osb(
        "--use-server-proxy", "command", "run", box, "-o", "raw", "--", "echo", "through")


def test_snapshot(box):
    run(box, "sh", "-c", "echo kept > /root/file")
    kept = told("snapshot", "create", box, "--name", "osb-kept")["id"]
    until(lambda: told("snapshot", "get", kept)["status"]["state"] == "Ready")
    assert [s["id"] for s in told("snapshot", "list", "--sandbox-id", box)["items"]] == [kept]
    assert [s["id"] for s in told("snapshot", "list", "--name", "osb-kept")["items"]] == [kept]
    assert told("snapshot", "list", "--name", "another")["items"] == []
    made = create("--snapshot-id", kept)
    assert run(made, "cat", "/root/file") == "kept"
    osb("sandbox", "kill", made)
    osb("snapshot", "delete", kept)
    osb("snapshot", "get", kept, ok=False)


def test_what_it_says_of_itself(box):
    assert "lifecycle" in osb("diagnostics", "events", box, "-s", "lifecycle", "-o", "json")
    assert told("diagnostics", "logs", box, "-s", "container")["sandbox_id"] == box
    for text in ("summary", "inspect", "logs", "events"):
        assert osb("devops", text, box, "-o", "raw").strip()
    assert box in osb("devops", "inspect", box, "-o", "raw")


def test_refused(box):
    assert "no-such-sandbox" in osb("sandbox", "get", "no-such-sandbox", ok=False)
    said = osb("sandbox", "get", box, ok=False, OPEN_SANDBOX_API_KEY="another")
    assert "key" in said.lower() and "another" not in said
