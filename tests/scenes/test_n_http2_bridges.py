# SPDX-License-Identifier: Apache-2.0
"""Bridges between HTTP/1.1 and HTTP/2: no message becomes two, none says what it may not."""
import base64
import hashlib
import time

import pytest
from conftest import HERE, SECRET
from h2_lab import ADDRESS, HOST, WEB, curl, peer  # noqa: F401
from test_n_http2_clients import Client, bridge, client  # noqa: F401

@pytest.mark.parametrize("authority, status", [
    (WEB, 421), (f"x.{HOST}", 421), (f"{HOST}:80", 421), (ADDRESS[HOST], 421), ("", 400),
    (f"user@{HOST}", 400), (f"{HOST}:", 400), (f"{HOST}:0443", 400), (f"{WEB},{HOST}", 400),
    (f"[{HOST}]", 400), (f"{HOST}..", 400)])
def test_case_15_authority_of_a_stream(peer, client, authority, status):  # noqa: F811
    """421 only where another connection would help; then the connection goes on."""
    r = client.ask("/wrong", authority=authority)
    assert r["status"] == status or (status == 400 and r["reset"] is not None), r
    for same in (HOST.upper(), f"{HOST}:443", f"{HOST}."):
        assert client.ask("/right", authority=same)["status"] == 200
    assert not peer.peer.seen(path="/wrong") and not peer.nginx.seen(path="/wrong")


def test_case_15_host_beside_another_authority(peer, client):  # noqa: F811
    r = client.ask("/beside", headers=[["host", WEB]])
    assert r["reset"] is not None and not peer.peer.seen(path="/beside"), r
    assert client.ask("/ok")["status"] == 200


def test_http2_by_prior_knowledge_is_refused(peer):  # noqa: F811
    """In clear text nobody agreed on it; its requests would be decided about as bytes."""
    preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
    for kind, port in (("tcp", "80"), ("tls", "443")):
        r = peer.sandboxes[0].run("/usr/bin/python3", HERE / "raw.py", kind, ADDRESS[HOST], port, HOST,
                                  input=preface, env=dict(peer.sandboxes[0].env(), WAIT="2"))
        assert r.stdout.startswith("HTTP/1.1 400 "), (kind, r.stdout, r.stderr)


SECOND = f"GET /second HTTP/1.1\r\nHost: {HOST}\r\n\r\n"


@pytest.mark.parametrize("left_open", [False, True])
def test_content_before_an_upgrade_is_no_second_request(peer, bridge, left_open):  # noqa: F811
    """To an origin that does not upgrade it would be one, which nobody decided about."""
    r = bridge.ask("/first", method="CONNECT", protocol="websocket", body=SECOND, open=left_open)
    assert r["status"] == 502 and "did not switch" in r["body"], r
    assert bridge.ask("/ok")["status"] == 200
    assert peer.peer.seen(path="/first") and not peer.peer.seen(path="/second")


def test_content_before_an_upgrade_waits_for_it(peer, bridge):  # noqa: F811
    r = bridge.ask("/switch", method="CONNECT", protocol="websocket", body="early")
    assert r["status"] == 200 and r["body"] == "early" and r["reset"] is None, r


def test_length_beside_an_upgrade_goes_no_further(peer, bridge):  # noqa: F811
    """Its content would be bytes of whoever has the connection next."""
    r = bridge.ask("/length", method="CONNECT", protocol="websocket", open=True,
                   headers=[["content-length", "40"]], body="x" * 40)
    assert r["status"] == 400 and not peer.peer.seen(path="/length"), r


@pytest.mark.parametrize("protocol", ["h2c", "websocket, h2c", "HTTP/2.0", "TLS/1.2"])
def test_extended_connect_is_no_way_to_another_http(peer, bridge, protocol):  # noqa: F811
    r = bridge.ask("/other", method="CONNECT", protocol=protocol, open=True)
    assert r["status"] == 501 and not peer.peer.seen(path="/other"), r


@pytest.mark.parametrize("method, status", [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_answer_without_content_whose_end_comes_later(peer, client, method, status):  # noqa: F811
    """An empty frame of DATA ends it; in HTTP/1.1 the head does."""
    asked = (f"{method} /bare/{status} HTTP/1.1\r\nHost: {HOST}\r\n\r\n"
             f"GET /ok HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n")
    r = peer.sandboxes[0].run("/usr/bin/python3", HERE / "raw.py", "tls", ADDRESS[HOST], "443", HOST,
                              input=asked, env=dict(peer.sandboxes[0].env(), WAIT="2"))
    head, _, rest = r.stdout.partition("\r\n\r\n" if "\r" in r.stdout else "\n\n")
    assert f" {status}" in head and "chunked" not in head.lower(), r.stdout
    assert rest.startswith("HTTP/1.1 200"), r.stdout
    assert client.ask(f"/bare/{status}", method=method)["status"] == status


# -- a WebSocket to an origin that speaks nothing but HTTP/2 ------------------------------

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = base64.b64encode(hashlib.sha1(
    (KEY + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()


def offers(lab, *protocols):
    """From now on, and on connections that are kept: none is left of them."""
    lab.peer.offers(*protocols)
    for _ in range(3):
        assert curl(lab.sandboxes[0], "/bye").stdout == "bye\n"
        time.sleep(0.2)


@pytest.fixture
def only_two(peer):  # noqa: F811
    offers(peer, "h2", "tunnels")
    yield peer
    offers(peer, "h2")


def upgrade(lab, path, *pieces):
    asked = (f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
             f"Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\n\r\n")
    return lab.sandboxes[0].run("/usr/bin/python3", HERE / "raw.py", "tls", ADDRESS[HOST], "443", HOST,
                                input="PAUSE\n".join([asked, *pieces]),
                                env=dict(lab.sandboxes[0].env(), WAIT="1.5"))


def test_websocket_of_http1_to_an_origin_of_http2_only(only_two):
    r = upgrade(only_two, "/switch/one", "hello ", "again")
    head, _, rest = r.stdout.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 101 Switching Protocols") and rest == "hello again", r.stdout
    fields = dict(line.lower().split(": ", 1) for line in head.splitlines()[1:])
    assert fields["upgrade"] == "websocket" and fields["connection"] == "upgrade", fields
    assert ACCEPT in head and fields["sec-websocket-protocol"] == "lab", fields
    [seen] = only_two.peer.seen(path="/switch/one")
    names = dict(seen["headers"])
    assert seen["method"] == "CONNECT" and names[":protocol"] == "websocket", seen
    assert names["authorization"] == f"Bearer {SECRET}" and names["sec-websocket-version"] == "13", seen
    assert not {"upgrade", "connection", "sec-websocket-key", "content-length"} & set(names), seen
    record = only_two.record(path="/switch/one")
    assert record["kind"] == "tunnel" and record["bytesIn"] == 11 and record["method"] == "GET", record


def test_websocket_of_http2_on_both_legs(only_two):
    with Client(only_two.sandboxes[0]) as client:  # noqa: F811
        assert client.ask("/ok")["status"] == 200
        r = client.ask("/switch/two", method="CONNECT", protocol="websocket", body="over two")
        assert r["status"] == 200 and r["body"] == "over two" and r["reset"] is None, r
        r = client.ask("/switch/torn", method="CONNECT", protocol="websocket", body="torn", open=True)
        assert r["status"] == 200 and r["reset"] == 8, r
        r = client.ask("/refused", method="CONNECT", protocol="websocket", open=True)
        assert r["status"] == 403 and r["body"] == "no tunnel\n", r
        assert client.ask("/ok")["status"] == 200
    assert [s["version"] for s in only_two.peer.seen(path="/switch/two")] == [2]


def test_origin_of_http2_without_tunnels_is_a_502(peer, client):  # noqa: F811
    r = upgrade(peer, "/switch/none")
    assert r.stdout.startswith("HTTP/1.1 502") and "tunnel" in r.stdout, r.stdout
    assert not peer.peer.seen(path="/switch/none")


def test_two_upgrades_or_content_before_one_are_no_tunnel(only_two):
    asked = (f"GET /switch/both HTTP/1.1\r\nHost: {HOST}\r\nConnection: Upgrade\r\n"
             "Upgrade: websocket, other\r\n\r\n")
    r = only_two.sandboxes[0].run("/usr/bin/python3", HERE / "raw.py", "tls", ADDRESS[HOST], "443", HOST,
                                  input=asked, env=dict(only_two.sandboxes[0].env(), WAIT="1"))
    assert r.stdout.startswith("HTTP/1.1 502") and not only_two.peer.seen(path="/switch/both"), r.stdout


def test_that_an_origin_speaks_http2_only_is_remembered(peer, client):  # noqa: F811
    """One refusal, not one for every request."""
    assert curl(peer.sandboxes[0], "/ok", "--http1.1").returncode == 0
    before = len([r for r in peer.peer.seen() if "accepted" in r])
    for _ in range(5):
        assert curl(peer.sandboxes[0], "/ok", "--http1.1").returncode == 0
    assert len([r for r in peer.peer.seen() if "accepted" in r]) == before
