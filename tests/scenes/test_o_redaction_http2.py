# SPDX-License-Identifier: Apache-2.0
"""Case 41 over HTTP/2: through windows and queues that are full."""
import pytest
from conftest import SECRET
from h2_lab import ADDRESS, curl, peer  # noqa: F401

LINES = 60000
MASK = "[REDACTED]" + "*" * (len(SECRET) - 10)


@pytest.fixture(scope="module")
def redacting(peer):
    peer.peer.offers("h2")
    peer.binding({"name": "opened", "match": {"hosts": list(ADDRESS)}, "redactBody": True,
                  "auth": {"type": "bearer", "credential": "api-token"}})


def line(i):
    begin = SECRET[:i % (len(SECRET) + 1)]
    return f"{i} {MASK if begin == SECRET else begin}\n"


@pytest.mark.parametrize("speed", ["1G", "1500k"])
@pytest.mark.parametrize("version", ["--http2", "--http1.1"])
@pytest.mark.parametrize("coding", ["plain", "gzip", "br", "zstd"])
def test_case_41_large_echo(peer, redacting, coding, version, speed):
    path = f"/coded/{coding}/{LINES}"
    r = curl(peer.sandboxes[0], path, "--compressed", version, "--limit-rate", speed)
    assert r.stdout == "".join(map(line, range(LINES))), (r.returncode, r.stderr, r.stdout[-200:])
    assert peer.record(path=path)["redactions"] == LINES // (len(SECRET) + 1)
