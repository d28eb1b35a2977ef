# SPDX-License-Identifier: Apache-2.0
"""What the configuration says that HTTP/2 of a sandbox may cost is what it costs."""
import json
import subprocess

import pytest
from conftest import HERE
from h2_lab import ADDRESS, HOST, ask, open_peer
from test_n_http2_clients import Client

STREAMS, SANDBOX_STREAMS, RESETS, FRAMES = 4, 6, 20, 150
CALM = 0xb


@pytest.fixture(scope="module")
def limited():
    with open_peer("nl", http2={"streams": STREAMS, "sandboxStreams": SANDBOX_STREAMS,
                                "sandboxHeldBytes": 1 << 20, "earlyResets": RESETS,
                                "uselessFrames": FRAMES}) as lab:
        yield lab


def flood(lab, name, seconds=8):
    r = lab.sandboxes[0].run("/usr/bin/python3", HERE / "h2_flood.py", name, ADDRESS[HOST], HOST,
                             seconds)
    return json.loads(r.stdout)


def test_streams_of_a_connection_and_of_a_sandbox(limited):
    limited.peer.offers("h2")
    hang = [{"path": "/slow/2"}] * STREAMS
    with Client(limited.sandboxes[0]) as first, Client(limited.sandboxes[0]) as second:
        first.begin(*hang)
        limited.wait(lambda: len(limited.peer.seen(path="/slow/2")) == STREAMS, 5, "the first ones")
        answers = second.ask_all(*hang)
        assert sorted(r["status"] for r in answers) == [200, 200, 503, 503], answers
        assert [r["status"] for r in first.end()] == [200] * STREAMS
        assert ask(limited.sandboxes[1])[0] == "200"
    assert {r["detail"] for r in limited.records(reason="limit")} == {
        "the sandbox has too much under way"}
    over = flood(limited, "over_the_limit")  # of the connection
    assert over["closed"] and over["status"].get("200", 0) <= STREAMS, over


@pytest.mark.parametrize("name", ["ping", "rapid_reset"])
def test_floods_end_as_early_as_configured(limited, name):
    marked = len(limited.records())
    said = flood(limited, name)
    assert said["goaway"] == CALM, said
    if name == "rapid_reset":  # each that was looked at at all has its record
        tried = [r for r in limited.records()[marked:] if r["kind"] == "http"]
        assert len(tried) <= RESETS * 2, len(tried)


def test_content_that_waits_for_its_reader(limited):
    """Answers that may not be sent: with half a MiB of them no more are asked for."""
    client = limited.sandboxes[0].popen("env", f"STREAMS={STREAMS}", "/usr/bin/python3",
                                        HERE / "h2_flood.py", "zero_window", ADDRESS[HOST], HOST, 10,
                                        stdout=subprocess.DEVNULL)
    try:
        limited.wait(lambda: ask(limited.sandboxes[0])[0] == "503", 8, "a refusal")
        assert ask(limited.sandboxes[1])[0] == "200"
    finally:
        client.kill()
        client.wait()
    limited.wait(lambda: ask(limited.sandboxes[0])[0] == "200", 8, "service")
