# SPDX-License-Identifier: Apache-2.0
"""An origin of HTTP/2 that is gone without a word: found out by a PING."""
import contextlib
import re
import time

import pytest
from h2_lab import H2, ask, open_peer
from lab import run
from test_n_http2_clients import INTERNAL, Client

PING_MS, ANSWER_MS, IDLE_MS = 600, 400, 30000
SILENT_S = (PING_MS + ANSWER_MS) / 1000
SLACK_S = 1.5


@pytest.fixture(scope="module")
def silent():
    with open_peer("nq", http2={"pingMs": PING_MS, "pingTimeoutMs": ANSWER_MS},
                   timeouts={"idleMs": IDLE_MS, "firstByteMs": 60000}) as lab:
        yield lab


@pytest.fixture
def client(silent):
    """Its connection to the origin is open and has served."""
    silent.peer.offers("h2")
    with Client(silent.sandboxes[0]) as c:
        assert c.ask("/ok")["status"] == 200
        yield c


def ports(lab):
    """Of the gateway's connections to the origin."""
    out = run("ip", "netns", "exec", lab.gw, "ss", "-Htn", "state", "established", "dst", H2).stdout
    return set(re.findall(r":(\d+)\s+\S+:443", out))


@contextlib.contextmanager
def silence(lab):
    """The client's connection leads nowhere from now on; others do."""
    conn = lab.peer.seen(path="/ok")[-1]["conn"]
    gone = {seen["port"] for seen in lab.peer.seen(accepted=conn)}
    assert len(gone) == 1 and gone <= ports(lab)
    [port] = gone
    nft = ("ip", "netns", "exec", lab.org, "nft")
    run(*nft, "-f", "-", input=f"""table inet silence {{
        chain in {{ type filter hook input priority 0; tcp sport {port} drop; }}
        chain out {{ type filter hook output priority 0; tcp dport {port} drop; }}
    }}""")
    try:
        yield gone
    finally:
        run(*nft, "delete", "table", "inet", "silence")


def test_stream_that_waits_fails_and_says_why(silent, client):
    client.begin({"path": "/hang/body", "method": "POST", "body": "x"})
    silent.wait(lambda: silent.peer.seen(path="/hang/body"), 5, "the request")
    with silence(silent) as gone:
        start = time.monotonic()
        [r] = client.end()
        assert time.monotonic() - start < SILENT_S + SLACK_S
        assert r["status"] == 502, r
        record = silent.record(path="/hang/body")
        assert record["reason"] == "origin_failed", record
        assert record["detail"] == "the origin fell silent", record
        assert not gone & ports(silent)
        start = time.monotonic()
        assert client.ask("/ok")["status"] == 200  # on another connection
        assert time.monotonic() - start < SLACK_S
    assert len(silent.peer.seen(path="/hang/body")) == 1  # never repeated


def test_request_that_may_be_repeated_is(silent, client):
    with silence(silent) as gone:
        start = time.monotonic()
        get, post = client.ask_all({"path": "/ok/get"},
                                   {"path": "/ok/post", "method": "POST", "body": "x"})
        assert get["status"] == 200 and post["status"] == 502, (get, post)
        assert time.monotonic() - start < SILENT_S + SLACK_S
        assert not gone & ports(silent)


def test_answer_that_stops_is_seen_as_broken_off(silent, client):
    client.begin({"path": "/drip/100"})
    time.sleep(0.5)
    with silence(silent):
        start = time.monotonic()
        [r] = client.end()
        assert time.monotonic() - start < SILENT_S + SLACK_S
    assert r["status"] == 200 and r["body"].startswith("first\ndrop\n") and r["reset"] == INTERNAL, r


def test_idle_connection_is_given_up_before_it_is_used(silent, client):
    with silence(silent) as gone:
        silent.wait(lambda: not gone & ports(silent), SILENT_S + SLACK_S, "the connection to end")
        start = time.monotonic()
        assert client.ask("/ok")["status"] == 200
        assert time.monotonic() - start < 0.4


def test_origin_that_thinks_for_long_is_asked_and_left_alone(silent, client):
    """Twice; more within five minutes would offend some."""
    conn = silent.peer.seen(path="/ok")[-1]["conn"]
    before = len(silent.peer.seen(ping=True, conn=conn))
    seconds = 6 * SILENT_S
    r = client.ask(f"/slow/{seconds}")
    assert r["status"] == 200 and r["body"] == "slow\n", r
    assert silent.peer.seen(path=f"/slow/{seconds}")[-1]["conn"] == conn
    assert len(silent.peer.seen(ping=True, conn=conn)) - before == 2
    assert client.ask("/ok")["status"] == 200
    assert silent.peer.seen(path="/ok")[-1]["conn"] == conn


def test_idle_connection_that_lives_is_kept(silent, client):
    conn = silent.peer.seen(path="/ok")[-1]["conn"]
    before = len(silent.peer.seen(ping=True, conn=conn))
    time.sleep(4 * SILENT_S)
    assert len(silent.peer.seen(ping=True, conn=conn)) - before == 1
    assert client.ask("/ok")["status"] == 200
    assert silent.peer.seen(path="/ok")[-1]["conn"] == conn


def test_busy_connection_is_not_asked(silent, client):
    conn = silent.peer.seen(path="/ok")[-1]["conn"]
    before = len(silent.peer.seen(ping=True, conn=conn))
    assert client.ask("/drip/25")["status"] == 200
    assert len(silent.peer.seen(ping=True, conn=conn)) == before
    assert ask(silent.sandboxes[1])[0] == "200"
