# SPDX-License-Identifier: Apache-2.0
"""Origins of HTTP/2 that break the protocol: no stream is forgotten."""
import time

import pytest
from h2_lab import HOST, WEB, ask, curl, open_peer, peer, rss  # noqa: F401
from test_n_http2_clients import Client


def test_an_origin_that_moves_its_goaway_up_ends_every_stream(peer):  # noqa: F811
    """The library gives the connection up by itself; who waits must hear of it."""
    urls = [f"https://{HOST}/{path}" for path in ("drip/100", "goaway/first", "goaway/second")]
    start = time.monotonic()
    r = peer.sandboxes[0].run("nghttp", "-nv", "--no-dep", *urls, timeout=20)
    assert time.monotonic() - start < 3, r.stdout
    assert "recv RST_STREAM" in r.stdout and r.stdout.count(":status: ") == 3, r.stdout


FLOODS = ["ping", "settings", "acks", "unknown", "window", "reset", "goaway", "empty", "padding",
         "tiny", "interim", "continuation", "nothing", "bomb", "trailers", "push"]


@pytest.mark.parametrize("kind", FLOODS)
def test_case_52_flood_of_an_origin_ends_its_connection(peer, kind):  # noqa: F811
    """What a client may not do, an origin may not either; and it costs nobody else."""
    peer.peer.offers("h2")
    with Client(peer.sandboxes[0]) as client:
        assert client.ask("/ok")["status"] == 200
        before, start = rss(peer), time.monotonic()
        r = client.ask(f"/flood/{kind}")
        assert time.monotonic() - start < 5, r["status"]
        assert r["status"] == 502 or r["reset"] is not None, r
        peer.wait(lambda: peer.peer.seen(flood=kind), 10, "the end of the flood")
        assert peer.peer.seen(flood=kind)[-1]["sent"] < 16 << 20
        assert rss(peer) - before < 40 * 1024  # a sanitizer keeps what was freed
        record = peer.record(path=f"/flood/{kind}")
        assert record["reason"] == "origin_failed", record
        assert kind == "interim" or record["detail"], record  # there its memory was used up
        assert client.ask("/ok")["status"] == 200  # on another connection


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
