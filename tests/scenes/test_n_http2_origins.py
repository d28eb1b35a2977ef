# SPDX-License-Identifier: Apache-2.0
"""Origins of HTTP/2 that break the protocol: no stream is forgotten."""
import time

from h2_lab import HOST, peer  # noqa: F401


def test_an_origin_that_moves_its_goaway_up_ends_every_stream(peer):  # noqa: F811
    """The library gives the connection up by itself; who waits must hear of it."""
    urls = [f"https://{HOST}/{path}" for path in ("drip/100", "goaway/first", "goaway/second")]
    start = time.monotonic()
    r = peer.sandboxes[0].run("nghttp", "-nv", "--no-dep", *urls, timeout=20)
    assert time.monotonic() - start < 3, r.stdout
    assert "recv RST_STREAM" in r.stdout and r.stdout.count(":status: ") == 3, r.stdout
