# SPDX-License-Identifier: Apache-2.0
"""Origins of HTTP/2 that break the protocol: no stream is forgotten."""
import time

import pytest
from h2_lab import HOST, WEB, ask, curl, open_peer, peer  # noqa: F401
from test_n_http2_clients import Client


def test_an_origin_that_moves_its_goaway_up_ends_every_stream(peer):  # noqa: F811
    """The library gives the connection up by itself; who waits must hear of it."""
    urls = [f"https://{HOST}/{path}" for path in ("drip/100", "goaway/first", "goaway/second")]
    start = time.monotonic()
    r = peer.sandboxes[0].run("nghttp", "-nv", "--no-dep", *urls, timeout=20)
    assert time.monotonic() - start < 3, r.stdout
    assert "recv RST_STREAM" in r.stdout and r.stdout.count(":status: ") == 3, r.stdout


@pytest.mark.parametrize("kept", [0, 1])
def test_connections_that_may_not_be_kept(kept):
    """Each ends when its last stream does, with a GOAWAY, and nothing else with it."""
    with open_peer(f"nz{kept}", limits={"upstreamIdle": kept}) as lab:
        lab.peer.offers("h2")
        with Client(lab.sandboxes[0]) as client:
            for _ in range(5):
                assert client.ask("/ok")["status"] == 200
                assert curl(lab.sandboxes[0], "/say/x", host=WEB).stdout == "said /say/x\n"
            answers = client.ask_all(*[{"path": "/ok"}, {"path": "/slow/0.2"}] * 10)
            assert [r["status"] for r in answers] == [200] * 20, answers
        if not kept:
            assert len(lab.peer.seen(goaway=0)) >= 5
        assert ask(lab.sandboxes[1])[0] == "200" and "ended by signal" not in lab.log()
