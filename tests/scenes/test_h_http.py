# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 as real clients and bad ones speak it, through an opened connection."""
import hashlib
import json
import re
import time

import events
import pytest
from conftest import HERE, SECRET
from lab import ORIGIN4

API = "https://api.lab.test"


def raw(sandbox, text, wait="5"):
    return sandbox.run("/usr/bin/python3", HERE / "raw.py", "tls", ORIGIN4, "443", "api.lab.test",
                       input=text, env=sandbox.env() | {"WAIT": wait})


def statuses(r):
    return [int(s) for s in re.findall(r"^HTTP/1\.1 (\d+)", r.stdout, re.M)]


def request(path, *headers, method="GET", body="", version="1.1", close=True):
    lines = [f"{method} {path} HTTP/{version}", "Host: api.lab.test", *headers]
    if close:
        lines.append("Connection: close")
    return "\r\n".join(lines) + "\r\n\r\n" + body


def test_order_and_case_of_headers_are_kept(sandbox, origin_seen):
    raw(sandbox, request("/order", "X-bBb: 2", "x-AAA: 1", "X-bBb: 3", "ACCEPT: */*"))
    [seen] = origin_seen(path="/order")
    names = [tuple(h) for h in seen["headers"] if h[0] != "Authorization"]
    assert names == [("Host", "api.lab.test"), ("X-bBb", "2"), ("x-AAA", "1"), ("X-bBb", "3"),
                     ("ACCEPT", "*/*")]
    assert seen["headers"][-1][0] == "Authorization"  # injection is last


def test_hop_by_hop_headers_end_here(sandbox, origin_seen):
    raw(sandbox, request("/hop", "Keep-Alive: timeout=5", "TE: trailers", "X-Mine: 1", "X-Stay: 2",
                         "Proxy-Authorization: Basic xyz", "Connection: x-mine"))
    [seen] = origin_seen(path="/hop")
    names = {h[0].lower() for h in seen["headers"]}
    assert names == {"host", "x-stay", "authorization"}


@pytest.mark.parametrize("size", [0, 1, 16383, 16384, 16385, 1 << 20, 64 << 20])
def test_download_of_any_size(sandbox, size):
    r = sandbox.run("sh", "-c", f"curl -sS --max-time 60 {API}/big/{size} | sha256sum")
    block = bytes(range(256)) * 256
    want = hashlib.sha256()
    left = size
    while left:
        want.update(block[:left])
        left -= min(left, len(block))
    assert r.stdout.split()[0] == want.hexdigest(), r.stderr


@pytest.mark.parametrize("how", ["length", "chunked"])
@pytest.mark.parametrize("size", [1, 70000, 8 << 20])
def test_upload_of_any_size(lab, sandbox, origin_seen, how, size):
    data = lab.tmp / f"upload-{size}"
    data.write_bytes((b"0123456789abcdef" * (size // 16 + 1))[:size])
    extra = ["-H", "Transfer-Encoding: chunked"] if how == "chunked" else []
    status, _, err = sandbox.curl(*extra, "-H", "Expect:", "--data-binary", f"@{data}",
                                  f"{API}/up-{how}-{size}")
    assert status == 200, err
    [seen] = origin_seen(path=f"/up-{how}-{size}")
    assert seen["length"] == size
    assert seen["sha256"] == hashlib.sha256(data.read_bytes()).hexdigest()


def test_case_29_expect_continue_is_relayed(sandbox, origin_seen):
    start = time.monotonic()
    status, _, _ = sandbox.curl("-H", "Expect: 100-continue", "-d", "x" * 2000, f"{API}/expect")
    assert status == 200 and time.monotonic() - start < 1.0  # curl waits 1 s for the 100
    assert origin_seen(path="/expect")[0]["length"] == 2000
    r = raw(sandbox, request("/refuse-expect", "Expect: 100-continue", "Content-Length: 5",
                             method="POST"))
    assert statuses(r) == [401]


def test_interim_answers_pass(sandbox):
    r = raw(sandbox, request("/hints"))
    assert statuses(r) == [103, 200]


def test_head_204_and_304_have_no_body(sandbox):
    text = (request("/head", method="HEAD", close=False) + request("/204", close=False) +
            request("/304", close=False) + request("/last"))
    r = raw(sandbox, text)
    assert statuses(r) == [200, 204, 304, 200]
    assert r.stdout.count("Content-Length: 77") == 1  # of the 304, as it came


def test_pipelined_requests_are_answered_in_order(sandbox, origin_seen):
    text = "".join(request(f"/pipe/{i}", close=False) for i in range(50)) + request("/pipe/50")
    r = raw(sandbox, text)
    assert statuses(r) == [200] * 51
    assert re.findall(r'"path": "/pipe/(\d+)"', r.stdout) == [str(i) for i in range(51)]


def test_many_pipelined_denials_need_no_stack(sandbox):
    one = "GET /x HTTP/1.1\r\nHost: other.lab.test\r\n\r\n"
    for pause in ("", "PAUSE\n"):  # a client that does not read for a while loses nothing
        r = raw(sandbox, one * 2000 + pause + request("/after"))
        assert statuses(r) == [421] * 2000 + [200]


@pytest.mark.parametrize("host", ["api.lab.test", "api.lab.test:443", "API.lab.test"])
def test_case_32_host_is_left_as_it_came(sandbox, origin_seen, host):
    r = raw(sandbox, request("/host").replace("Host: api.lab.test", f"Host: {host}"))
    assert statuses(r) == [200]
    assert dict(origin_seen(path="/host")[-1]["headers"])["Host"] == host


def test_trailers_both_ways(sandbox, origin_seen):
    body = "5\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n"
    r = raw(sandbox, request("/trailers", "Transfer-Encoding: chunked", method="POST", body=body))
    assert origin_seen(path="/trailers")[0]["trailers"] == ["X-Sum: 5"]
    assert "X-Sum: 5" in r.stdout


def test_close_delimited_answer_is_whole(sandbox):
    status, body, _ = sandbox.curl(f"{API}/close")
    assert (status, body) == (200, "until the end")


def test_answer_that_breaks_off_is_seen_as_broken(lab, sandbox):
    r = sandbox.run("curl", "-sS", "--max-time", "10", f"{API}/broken")
    assert r.returncode in (18, 56), (r.returncode, r.stderr)
    assert lab.record(path="/broken")["reason"] == "origin_failed"


def test_origin_that_says_nothing_is_a_502_with_a_reason(lab, sandbox):
    status, body, _ = sandbox.curl("-X", "POST", "-d", "x", f"{API}/nothing")
    assert status == 502 and json.loads(body)["reason"] == "origin_failed"


def test_early_final_answer_reaches_the_client(sandbox):
    r = sandbox.run("sh", "-c", "head -c 20000000 /dev/zero | curl -sS --max-time 10 -o /dev/null "
                    f"-w '%{{http_code}}' -T - {API}/early")
    assert r.stdout == "413", r.stderr


def test_case_42_events_arrive_as_they_are_made(sandbox):
    late = events.delays(sandbox)
    assert len(late) == 5 and max(late) < events.APART_S, late


def test_case_45_long_think_before_the_first_byte(sandbox):
    assert sandbox.curl(f"{API}/slow/3")[0] == 200


def test_case_47_upgrade_becomes_opaque(sandbox, origin_seen):
    text = ("GET /upgrade HTTP/1.1\r\nHost: api.lab.test\r\nConnection: keep-alive, Upgrade\r\n"
            "Upgrade: lab-echo\r\nX-Other: kept\r\n\r\nPAUSE\n\x00\x01binary bytes\nPAUSE\nmore")
    r = raw(sandbox, text, wait="2")
    assert statuses(r) == [101] and "X-Kept: yes" in r.stdout
    assert "\x00\x01binary bytes\nmore" in r.stdout
    [seen] = origin_seen(path="/upgrade")
    headers = dict(seen["headers"])
    assert headers["X-Other"] == "kept" and headers["Authorization"] == f"Bearer {SECRET}"


def test_connection_is_reused_towards_the_origin(lab, sandbox, origin_seen):
    sandbox.curl(f"{API}/reuse/1", f"{API}/reuse/2")
    assert lab.record(path="/reuse/2").get("originReused")


def test_nothing_is_reused_between_sandboxes(lab, sandbox, neighbour):
    sandbox.curl(f"{API}/mine/1")
    neighbour.curl(f"{API}/mine/2", f"{API}/mine/3")
    assert not lab.record(path="/mine/2").get("originReused")
    assert lab.record(path="/mine/3").get("originReused")


def test_stale_kept_connection_is_replaced(lab, sandbox):
    # the first says more than it was asked: its connection is never reused
    status, body, _ = sandbox.curl(f"{API}/twice", f"{API}/after-twice")
    assert status == 200 and "extra" not in body
    assert not lab.record(path="/after-twice").get("originReused")


def test_http_1_0_client(sandbox):
    r = raw(sandbox, "GET /trailers HTTP/1.0\r\nHost: api.lab.test\r\n\r\n")
    assert statuses(r) == [200] and r.stdout.endswith("hello")  # no chunks


@pytest.mark.parametrize("text", [
    "GET /s HTTP/1.1\r\nHost: api.lab.test\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    "POST /s HTTP/1.1\r\nHost: api.lab.test\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST /s HTTP/1.1\r\nHost: api.lab.test\r\nTransfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n".replace("\t\r", ", chunked\r"),
    "POST /s HTTP/1.1\r\nHost: api.lab.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "POST /s HTTP/1.1\r\nHost: api.lab.test\r\nTransfer-Encoding: identity\r\n\r\n",
    "GET /s HTTP/1.1\r\nHost: api.lab.test\r\nHost: api.lab.test\r\n\r\n",
    "GET /s HTTP/1.1\r\n\r\n",
    "GET /s HTTP/1.1\r\nHost : api.lab.test\r\n\r\n",
    "GET /s HTTP/1.1\r\nHost: api.lab.test\r\nX: a\r\n b\r\n\r\n",
    "GET /s HTTP/1.1\nHost: api.lab.test\n\n",
    "GET /s HTTP/1.1\r\nHost: api.lab.test\r\nX: a\rb\r\n\r\n",
    "GET /s HTTP/1.1\r\nHost: api.lab.test\r\nX: a\0b\r\n\r\n",
    "GET  /s HTTP/1.1\r\nHost: api.lab.test\r\n\r\n",
    "GET /s HTTP/2.0\r\nHost: api.lab.test\r\n\r\n",
    "GET /s HTTP/1.1\r\nHost: api.lab.test\r\nX: " + "a" * 70000 + "\r\n\r\n",
    "CONNECT api.lab.test:443 HTTP/1.1\r\nHost: api.lab.test:443\r\n\r\n",
])
def test_case_30_ambiguous_or_broken_requests_are_refused(lab, sandbox, origin_seen, text):
    r = raw(sandbox, text, wait="3")
    assert len(statuses(r)) == 1 and statuses(r)[0] in (400, 405, 431), r.stdout
    assert not origin_seen(path="/s")
    assert "malformed" in r.stdout


@pytest.mark.parametrize("body", [
    "g\r\n", "-1\r\nx\r\n0\r\n\r\n", "+1\r\nx\r\n0\r\n\r\n", "0x1\r\nx\r\n0\r\n\r\n", "1 \r\nx\r\n0\r\n\r\n",
    "1\nx\n0\n\n", "1\r\nxy\r\n0\r\n\r\n", "ffffffffffffffffff\r\n",
    "0\r\nContent-Length: 5\r\n\r\n", "0\r\nAuthorization: x\r\n\r\n"])
def test_case_30_bad_chunking_is_refused(sandbox, origin_seen, body):
    r = raw(sandbox, request("/chunk", "Transfer-Encoding: chunked", method="POST", body=body), "3")
    assert statuses(r) in ([400], []), r.stdout
    assert not origin_seen(path="/chunk")  # the origin never saw a whole request


def test_bad_answers_are_not_passed_on(lab, sandbox):
    status, body, _ = sandbox.curl(f"{API}/bad-head")
    assert status == 502 and json.loads(body)["reason"] == "origin_failed"


def test_slow_reader_holds_back_the_origin_not_the_memory(lab, sandbox):
    pid = lab.role_pid("gateway")

    def rss():
        return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read()).group(1))
    before = rss()
    p = sandbox.popen("curl", "-sS", "--max-time", "6", "--limit-rate", "10k", "-o", "/dev/null",
                      f"{API}/big/{200 << 20}")
    time.sleep(3)
    grown = rss() - before
    p.wait()
    assert grown < 4096, f"{grown} KiB for one slow reader"
