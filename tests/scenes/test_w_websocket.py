# SPDX-License-Identifier: Apache-2.0
"""WebSocket with an injected credential, over HTTP/1.1 and HTTP/2 (cases 18, 47)."""
import json

import nginx
import pytest
from conftest import HERE, SECRET
from lab import run

WS = "10.212.2.7"
SERVER = """
  server {{
    listen {v4}:443 ssl http2; server_name ws.lab.test;
    ssl_certificate {crt}; ssl_certificate_key {key};
    location / {{ return 200 "web\\n"; }}
    location /ws {{
      proxy_pass http://127.0.0.1:8098; proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "Upgrade";
    }}
  }}
"""


@pytest.fixture(scope="module")
def ws(lab):
    run("ip", "-n", lab.org, "addr", "add", f"{WS}/24", "dev", "o0")
    base = lab.tmp / "ws"
    base.mkdir()
    crt, key = lab.leaf("ws", "ws.lab.test")
    log, ready = base / "log", base / "ready"
    lab.in_origin("/usr/bin/python3", HERE / "ws_peer.py", "serve", "127.0.0.1", "8098", log,
                  stdout=open(ready, "wb"))
    nginx.launch(lab, base, SERVER.format(v4=WS, crt=crt, key=key))
    lab.wait(lambda: ready.read_text().strip(), 10, "the server")
    lab.put_policy("lab", dict(lab.usual_policy, egress=lab.usual_policy["egress"] + [
        {"action": "allow", "target": "ws.lab.test"}]))
    assert lab.admin.call("PUT", "/v1/bindings/ws", {
        "name": "ws", "match": {"hosts": ["ws.lab.test"]},
        "auth": {"type": "bearer", "credential": "api-token"}})[0] in (200, 201)
    yield lambda: [json.loads(x) for x in log.read_text().splitlines()]
    lab.admin.call("DELETE", "/v1/bindings/ws", expect=204)
    lab.put_policy("lab", lab.usual_policy)


def headers_of(record):
    return {k.lower(): v for k, v in record.items()}


def test_case_47_websocket_over_http1(lab, sandbox, ws):
    r = sandbox.run("/usr/bin/python3", HERE / "ws_peer.py", "h1", "wss://ws.lab.test/ws/one")
    assert r.stdout.strip() == "ok lab", r.stdout + r.stderr
    assert headers_of(ws()[-1])["authorization"] == f"Bearer {SECRET}"
    record = lab.record(path="/ws/one")
    assert record["kind"] == "tunnel" and record["injected"] and record["bytesIn"] > 1 << 20


def test_case_18_websocket_over_http2(lab, sandbox, ws):
    r = sandbox.run("/usr/bin/python3", HERE / "ws_peer.py", "h2", WS, "ws.lab.test", "/ws/two")
    assert r.stdout.strip() == "200 hello yyy", r.stdout + r.stderr + lab.log()
    assert headers_of(ws()[-1])["authorization"] == f"Bearer {SECRET}"
    assert lab.record(path="/ws/two")["injected"]


def test_denied_websocket_is_refused_not_hung(lab, sandbox, ws):
    with lab.policy([{"action": "allow", "target": "ws.lab.test", "methods": ["POST"]}]):
        r = sandbox.run("/usr/bin/python3", HERE / "ws_peer.py", "h1", "wss://ws.lab.test/ws/no",
                        timeout=10)
    assert "403" in r.stderr and not [x for x in ws() if "/ws/no" in str(x)]
