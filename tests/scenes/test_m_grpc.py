# SPDX-License-Identifier: Apache-2.0
"""gRPC of all four kinds with an injected credential (cases 17 and 19)."""
import base64
import json

import pytest
from conftest import HERE, SECRET
from lab import run

GRPC = "10.212.2.6"


@pytest.fixture(scope="module")
def grpc(lab):
    run("ip", "-n", lab.org, "addr", "add", f"{GRPC}/24", "dev", "o0")
    crt, key = lab.leaf("grpc", "grpc.lab.test")
    log, ready = lab.tmp / "grpc.log", lab.tmp / "grpc.ready"
    lab.in_origin("/usr/bin/python3", HERE / "grpc_peer.py", "serve", f"{GRPC}:443", crt, key, log,
                  stdout=open(ready, "wb"))
    lab.wait(lambda: ready.read_text().strip(), 10, "the gRPC server")
    lab.put_policy("lab", dict(lab.usual_policy, egress=lab.usual_policy["egress"] + [
        {"action": "allow", "target": "grpc.lab.test", "methods": ["POST"], "paths": ["/lab.Echo/*"]}]))
    assert lab.admin.call("PUT", "/v1/bindings/grpc", {
        "name": "grpc", "match": {"hosts": ["grpc.lab.test"]},
        "auth": {"type": "bearer", "credential": "api-token"}})[0] in (200, 201)

    def seen(method):
        return [r["metadata"] for r in map(json.loads, log.read_text().splitlines())
                if r["method"] == method]
    yield seen
    lab.admin.call("DELETE", "/v1/bindings/grpc", expect=204)
    lab.put_policy("lab", lab.usual_policy)


def call(sandbox, kind, *words):
    r = sandbox.run("/usr/bin/python3", HERE / "grpc_peer.py", "call", "grpc.lab.test:443", kind, *words)
    assert r.returncode == 0, r.stderr
    return r.stdout.strip()


def test_unary_with_metadata_and_trailers(lab, sandbox, grpc):
    out = call(sandbox, "unary")
    assert out.startswith("hello") and "'x-sum': '5'" in out
    assert SECRET not in out and "[REDACTED]" in out  # the server echoed it in a trailer
    metadata = grpc("unary")[-1]
    assert metadata["authorization"] == f"Bearer {SECRET}"
    assert metadata["x-mine"] == "1" and metadata["x-bin-bin"] == "00ff"
    assert lab.record(path="/lab.Echo/Unary")["injected"]


def test_status_without_a_message(sandbox, grpc):
    assert call(sandbox, "fail") == "FAILED_PRECONDITION as you wished"


def test_case_19_server_stream_arrives_as_it_is_made(sandbox, grpc):
    assert call(sandbox, "out") == "6 True"


def test_client_stream(sandbox, grpc):
    assert call(sandbox, "in") == "100000"


def test_both_ways_strictly_in_turn(sandbox, grpc):
    assert call(sandbox, "both") == "20 re:19"
    assert grpc("both")[-1]["authorization"] == f"Bearer {SECRET}"


def test_large_messages(sandbox, grpc):
    assert call(sandbox, "large") == "True"


def test_deadline_and_cancel(sandbox, grpc):
    assert call(sandbox, "deadline") == "DEADLINE_EXCEEDED True"
    assert call(sandbox, "cancel") == "CANCELLED"


def test_denied_method_is_an_error_the_client_understands(lab, sandbox, grpc):
    with lab.policy([{"action": "allow", "target": "grpc.lab.test", "methods": ["GET"]}]):
        out = call(sandbox, "denied")
    lab.put_policy("lab", dict(lab.usual_policy, egress=lab.usual_policy["egress"] + [
        {"action": "allow", "target": "grpc.lab.test"}]))
    assert out.startswith("PERMISSION_DENIED"), out


@pytest.fixture
def redacting(lab, grpc):
    """The binding asks for the messages too."""
    usual = {"name": "grpc", "match": {"hosts": ["grpc.lab.test"]},
             "auth": {"type": "bearer", "credential": "api-token"}}
    lab.binding(dict(usual, redactBody=True))
    yield
    lab.binding(usual)


def test_redacted_messages_in_turn_are_not_held_back(lab, sandbox, redacting):
    """Each ends as a form of the secret begins: raw, base64, hex, percent."""
    forms = [SECRET, base64.b64encode(SECRET.encode()).decode(), SECRET.encode().hex(),
             "".join("%%%02X" % c for c in SECRET.encode())]
    words = [f"to {f[:n]}" for f in forms for n in (1, 2, 9, len(f) - 1)]
    got = json.loads(call(sandbox, "turns", *words, "secret ", words[0]))
    mask = "[REDACTED]" + "*" * (len(SECRET) - 10)
    assert got == [f"re:{w}" for w in words] + [f"re:secret Bearer {mask}", f"re:{words[0]}"], got
    assert lab.record(path="/lab.Echo/Both")["redactions"] == 1


def test_compressed_message_that_was_not_asked_for_is_not_shown(lab, sandbox, redacting):
    """It cannot be searched."""
    assert call(sandbox, "packed") == "INTERNAL"
    assert lab.record(path="/lab.Echo/Unary")["reason"] == "no_redaction"


def test_redaction_of_all_kinds(sandbox, redacting):
    assert call(sandbox, "large") == "True"
    assert call(sandbox, "both") == "20 re:19"
    assert call(sandbox, "out") == "6 True"
