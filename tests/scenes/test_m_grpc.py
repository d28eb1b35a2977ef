# SPDX-License-Identifier: Apache-2.0
"""gRPC of all four kinds with an injected credential (cases 17 and 19)."""
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


def call(sandbox, kind):
    r = sandbox.run("/usr/bin/python3", HERE / "grpc_peer.py", "call", "grpc.lab.test:443", kind)
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
