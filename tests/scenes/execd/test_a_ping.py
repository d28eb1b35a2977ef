# SPDX-License-Identifier: Apache-2.0
"""test_a_ping.py - the daemon answers, and asks for its token when it has one"""


def test_ping_is_an_empty_success(execd):
    reply = execd.request("GET", "/ping")
    assert (reply.status, reply.body) == (200, b"")
    assert reply.headers["content-length"] == "0"
    assert "transfer-encoding" not in reply.headers


def test_the_token_is_asked_for(start_execd):
    execd = start_execd(token="let-me-in")
    assert execd.request("GET", "/ping").status == 200
    for token in (None, "let-me-in2", "let-me-i"):
        reply = execd.request("GET", "/ping", token=token)
        assert reply.status == 401
        assert reply.json() == {
            "error": "Unauthorized: invalid or missing header X-EXECD-ACCESS-TOKEN"}
