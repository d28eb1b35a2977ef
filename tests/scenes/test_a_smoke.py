# SPDX-License-Identifier: Apache-2.0
"""The main job: allowed arrives, with its credential; denied is told why."""
import json

from conftest import SECRET


def test_allowed_call_carries_the_credential(lab, sandbox, origin_seen):
    status, body, err = sandbox.curl("https://api.lab.test/v1/models")
    assert status == 200, (body, err, lab.log())
    [request] = origin_seen(path="/v1/models")
    headers = dict(request["headers"])
    assert headers["Authorization"] == f"Bearer {SECRET}"
    assert headers["Host"] == "api.lab.test"
    assert SECRET not in body + err
    record = lab.record(path="/v1/models")
    assert record["verdict"] == "allow" and record["injected"] and record["binding"] == "api"
    assert record["sandbox"] == sandbox.id and record["status"] == 200
    assert SECRET not in lab.audit_text()


def test_what_the_sandbox_sent_in_the_slot_is_replaced(lab, sandbox, origin_seen):
    status, _, _ = sandbox.curl("-H", "Authorization: Bearer stolen", "-H",
                                "authorization: second", "https://api.lab.test/slot")
    assert status == 200
    [request] = origin_seen(path="/slot")
    values = [v for k, v in request["headers"] if k.lower() == "authorization"]
    assert values == [f"Bearer {SECRET}"]


def test_allowed_without_binding_is_passed_through_unopened(lab, sandbox, origin_seen):
    status, _, err = sandbox.curl("--cacert", lab.origin_ca, "https://plain.lab.test/x")
    assert status == 200, err
    [request] = origin_seen(path="/x")
    assert "Authorization" not in dict(request["headers"])
    record = lab.record(kind="tunnel", host="plain.lab.test")
    assert "inspected" not in record and record["bytesIn"] > 0


def test_denied_name_does_not_resolve_and_says_why(lab, sandbox):
    status, _, err = sandbox.curl("https://denied.lab.test/")
    assert status == 0 and "resolve" in err
    record = lab.record(kind="dns", host="denied.lab.test")
    assert record["verdict"] == "deny" and record["policy"] == "lab"
    r = sandbox.run("dig", "+time=2", "+tries=1", f"@{sandbox.gw4}", "denied.lab.test")
    assert "NXDOMAIN" in r.stdout and "EDE" in r.stdout and "policy" in r.stdout, r.stdout


def test_denied_tls_gets_an_alert_at_once(lab, sandbox):
    r = sandbox.run("curl", "-sS", "--max-time", "5", "--resolve",
                    "denied.lab.test:443:10.212.2.2", "https://denied.lab.test/")
    assert r.returncode == 35 and "access denied" in r.stderr.lower(), r.stderr
    record = lab.record(kind="connect", host="denied.lab.test")
    assert record["reason"] == "policy"


def test_denied_http_gets_a_reason_in_json(lab, sandbox):
    status, body, _ = sandbox.curl("-i", "--resolve", "denied.lab.test:80:10.212.2.2",
                                   "http://denied.lab.test/")
    assert status == 403
    head, _, text = body.partition("\r\n\r\n")
    assert "Sallyport-Denied: policy" in head
    reason = json.loads(text)
    assert reason["policy"] == "lab" and reason["host"] == "denied.lab.test"
    assert "default" in reason["detail"]


def test_method_and_path_rules_open_the_connection(lab, sandbox, origin_seen):
    url = "https://limited.lab.test"
    assert sandbox.curl(url + "/ok/1")[0] == 200
    assert sandbox.curl("-d", "x", url + "/ok/2")[0] == 403
    assert sandbox.curl(url + "/other")[0] == 403
    assert sandbox.curl("--path-as-is", url + "/ok/../other")[0] == 403
    assert sandbox.curl("--path-as-is", url + "/ok/%2e%2e/other")[0] == 403
    assert [r["path"] for r in origin_seen()] == ["/ok/1"]


def test_ipv6_is_the_same(lab, sandbox, origin_seen):
    status, _, err = sandbox.curl("-6", "https://api.lab.test/six")
    assert status == 200, err
    [request] = origin_seen(path="/six")
    assert dict(request["headers"])["Authorization"] == f"Bearer {SECRET}"
    assert lab.record(path="/six")["client"].startswith("[fd11:")
