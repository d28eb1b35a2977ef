# SPDX-License-Identifier: Apache-2.0
"""Bridges between HTTP/1.1 and HTTP/2: no message becomes two, none says what it may not."""
import json

import pytest
from conftest import HERE
from h2_lab import ADDRESS, HOST, peer  # noqa: F401
from test_n_http2_clients import Client, bridge, client  # noqa: F401

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
