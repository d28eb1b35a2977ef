# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 on both legs: real clients, a real origin, every stream decided."""
import hashlib
import json
import re
import time

import nginx
import pytest
from conftest import SECRET
from lab import run

H2 = "10.212.2.5"
SERVERS = """
  keepalive_requests 100000; http2_max_concurrent_streams 256;
  server {{
    listen {v4}:443 ssl http2; server_name two.lab.test;
    ssl_certificate {crt}; ssl_certificate_key {key};
    location /say/ {{ return 200 "said $request_uri\\n"; }}
    location /echo {{ add_header X-Echo $http_authorization; return 200 "ok\\n"; }}
    location = /upload {{ proxy_pass http://127.0.0.1:8099; proxy_request_buffering off; }}
    location = /none {{ return 204; }}
  }}
"""
SINK = """
import hashlib, http.server
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        h, n = hashlib.sha256(), 0
        if self.headers.get("Transfer-Encoding") == "chunked":
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                h.update(self.rfile.read(size)); n += size
                self.rfile.readline()
                if not size: break
        else:
            left = int(self.headers["Content-Length"])
            while left:
                d = self.rfile.read(min(left, 65536))
                h.update(d); n += len(d); left -= len(d)
        out = f"{n} {h.hexdigest()}".encode()
        self.send_response(200); self.send_header("Content-Length", str(len(out)))
        self.end_headers(); self.wfile.write(out)
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(("127.0.0.1", 8099), H).serve_forever()
"""


@pytest.fixture(scope="module")
def two(lab):
    """An origin that speaks HTTP/2, with a credential bound to it."""
    run("ip", "-n", lab.org, "addr", "add", f"{H2}/24", "dev", "o0")
    base = lab.tmp / "two"
    (base / "www").mkdir(parents=True)
    (base / "www" / "big").write_bytes(bytes(range(256)) * 4 * 16384)  # 16 MiB
    (base / "www" / "small").write_text("small\n")
    crt, key = lab.leaf("two", "two.lab.test")
    lab.in_origin("/usr/bin/python3", "-c", SINK)
    nginx.launch(lab, base, SERVERS.format(v4=H2, crt=crt, key=key))
    lab.put_policy("lab", dict(lab.usual_policy, egress=lab.usual_policy["egress"] + [
        {"action": "allow", "target": "two.lab.test"},
        {"action": "allow", "target": f"{H2}/32"}]))
    status, _ = lab.admin.call("PUT", "/v1/bindings/two", {
        "name": "two", "match": {"hosts": ["two.lab.test"], "methods": ["GET", "POST", "HEAD"]},
        "auth": {"type": "bearer", "credential": "api-token"}})
    assert status in (200, 201)

    def seen(**match):
        time.sleep(0.1)
        return nginx.requests(base, **match)
    yield seen
    lab.admin.call("DELETE", "/v1/bindings/two", expect=204)
    lab.put_policy("lab", lab.usual_policy)


def curl(sandbox, *args):
    return sandbox.run("curl", "-sS", "--max-time", "20", "--http2", "--resolve",
                       f"two.lab.test:443:{H2}", *args)


def test_case_17_http2_on_both_legs_with_the_credential(lab, sandbox, two):
    r = curl(sandbox, "-w", "\n%{http_version} %{http_code}", "https://two.lab.test/say/1")
    assert r.stdout == "said /say/1\n\n2 200", r.stderr + lab.log()
    [seen] = two(path="/say/1")
    assert seen["auth"] == f"Bearer {SECRET}" and seen["protocol"] == "HTTP/2.0"
    record = lab.record(path="/say/1")
    assert record["injected"] and record["status"] == 200


def test_http1_client_of_an_http2_origin(sandbox, two):
    r = curl(sandbox, "--http1.1", "-w", "%{http_version}", "https://two.lab.test/say/one")
    assert r.stdout.endswith("1.1"), r.stderr
    assert two(path="/say/one")[0]["auth"] == f"Bearer {SECRET}"


def test_http2_client_of_an_http1_origin_gets_http1(sandbox, two):
    r = sandbox.run("curl", "-sS", "--http2", "-w", "%{http_version}", "-o", "/dev/null",
                    "https://api.lab.test/h1")
    assert r.stdout == "1.1", r.stderr


def test_many_streams_share_one_connection(sandbox, two):
    r = sandbox.run("nghttp", "-nv", "--no-dep", "-H:authority: two.lab.test",
                    *[f"https://{H2}/say/many{i}" for i in range(3)])
    r = sandbox.run("h2load", "-n", "500", "-c", "2", "-m", "50", "--connect-to", f"{H2}:443",
                    "https://two.lab.test/say/load")
    assert "500 succeeded, 0 failed, 0 errored" in r.stdout, r.stdout + r.stderr
    records = two(path="/say/load")
    assert len(records) == 500 and all(x["auth"] == f"Bearer {SECRET}" for x in records)
    assert len({x["conn"] for x in records}) <= 6


def test_large_download_is_whole(sandbox, two):
    r = sandbox.run("sh", "-c", f"curl -sS --http2 --resolve two.lab.test:443:{H2} "
                    "https://two.lab.test/big | sha256sum")
    assert r.stdout.split()[0] == hashlib.sha256(bytes(range(256)) * 4 * 16384).hexdigest(), r.stderr


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 8 << 20])
def test_upload_is_whole(lab, sandbox, two, size):
    data = lab.tmp / f"up2-{size}"
    data.write_bytes(b"0123456789abcdef" * (size // 16 + 1))
    with open(data, "r+b") as f:
        f.truncate(size)
    r = curl(sandbox, "-H", "Content-Type: application/octet-stream", "--data-binary", f"@{data}",
             "https://two.lab.test/upload")
    assert r.stdout == f"{size} {hashlib.sha256(data.read_bytes()).hexdigest()}", r.stderr


def test_no_body_answers(sandbox, two):
    r = curl(sandbox, "-w", "%{http_code} %{size_download}", "https://two.lab.test/none")
    assert r.stdout == "204 0"
    r = curl(sandbox, "-I", "https://two.lab.test/small")
    assert "HTTP/2 200" in r.stdout and "content-length: 6" in r.stdout.lower()


def test_echo_of_the_secret_is_redacted(sandbox, two):
    r = curl(sandbox, "-i", "https://two.lab.test/echo")
    assert SECRET not in r.stdout and "x-echo: Bearer [REDACTED]" in r.stdout, r.stdout


def test_case_15_another_authority_on_a_stream_is_misdirected(lab, sandbox, two):
    r = sandbox.run("nghttp", "-v", "-H:authority: api.lab.test", "--no-verify-peer",
                    "https://two.lab.test/say/wrong",
                    env=sandbox.env())
    r = sandbox.python(CLIENT, H2, "two.lab.test", "api.lab.test")
    assert "421" in r.stdout, r.stdout + r.stderr
    assert not [x for x in two() if x["path"] == "/coalesced"]


CLIENT = """
import socket, ssl, sys, os
import h2.connection, h2.events
address, sni, authority = sys.argv[1:4]
c = ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
c.set_alpn_protocols(["h2"])
s = c.wrap_socket(socket.create_connection((address, 443)), server_hostname=sni)
assert s.selected_alpn_protocol() == "h2"
conn = h2.connection.H2Connection()
conn.initiate_connection()
conn.send_headers(1, [(":method", "GET"), (":scheme", "https"), (":authority", authority),
                      (":path", "/coalesced")], end_stream=True)
s.sendall(conn.data_to_send())
done = False
while not done:
    data = s.recv(65536)
    if not data:
        break
    for e in conn.receive_data(data):
        if isinstance(e, h2.events.ResponseReceived):
            print(dict(e.headers)[b":status"].decode())
        if isinstance(e, (h2.events.StreamEnded, h2.events.StreamReset)):
            done = True
    s.sendall(conn.data_to_send())
"""


def test_denied_stream_says_why(lab, sandbox, two):
    with lab.policy([{"action": "allow", "target": "two.lab.test", "methods": ["GET"],
                      "paths": ["/say/*"]}, {"action": "allow", "target": f"{H2}/32",
                      "methods": ["GET"], "paths": ["/say/*"]}]):
        r = curl(sandbox, "-i", "https://two.lab.test/small")
    lab.put_policy("lab", dict(lab.usual_policy, egress=lab.usual_policy["egress"] + [
        {"action": "allow", "target": "two.lab.test"},
        {"action": "allow", "target": f"{H2}/32"}]))
    assert "HTTP/2 403" in r.stdout and "sallyport-denied: policy" in r.stdout, r.stdout + r.stderr
    assert json.loads(r.stdout.split("\r\n\r\n", 1)[1])["policy"] == "lab"


def downloads(sandbox, *more):
    """Four of them, at the same time."""
    return [sandbox.popen("curl", "-sS", "--http2", "--max-time", "20", "-o", "/dev/null", "--resolve",
                          f"two.lab.test:443:{H2}", *more, "https://two.lab.test/big")
            for _ in range(4)]


def test_slow_reader_of_one_stream_holds_back_only_that(lab, sandbox, two):
    pid = lab.role_pid("gateway")

    def rss():
        return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read()).group(1))
    # what passes fills the allocator first (a sanitizer keeps what was freed, for a while)
    assert [p.wait() for p in downloads(sandbox)] == [0] * 4
    before = rss()
    slow = downloads(sandbox, "--limit-rate", "20k")
    time.sleep(1)
    start = time.monotonic()
    r = curl(sandbox, "https://two.lab.test/say/quick")
    assert r.stdout == "said /say/quick\n" and time.monotonic() - start < 1
    grown = rss() - before
    for p in slow:
        p.terminate()
        p.wait()
    assert grown < 16 * 1024, f"{grown} KiB"
