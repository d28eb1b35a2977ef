# SPDX-License-Identifier: Apache-2.0
"""What HTTP/2 makes of a credential stays no longer in memory than its frame."""
import secrets
import time

import memory
import pytest
from h2_lab import ADDRESS, curl, peer  # noqa: F401
from hpack.huffman import HuffmanEncoder
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
from test_n_http2_clients import Client


def encoded(text):
    """As a string is in a frame (RFC 7541 5.2), but for the last octet's padding."""
    coder = HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH)
    return coder.encode(text.encode())[:-1]


class Value:
    """A fresh credential, bound to every host: nothing said it before."""

    def __init__(self, lab, name, repeat=1):
        self.lab, self.text = lab, f"zq-{name}-{secrets.token_hex(12)}" * repeat
        self.header = f"Bearer {self.text}"
        lab.credential(name, self.text)
        lab.binding({"name": "opened", "match": {"hosts": list(ADDRESS)},
                     "auth": {"type": "bearer", "credential": name}})

    def unguarded(self):
        """Where it is and must not be, plain or as HPACK writes it."""
        hits = memory.search(self.lab.role_pid("gateway"),
                             [self.text[:200], encoded(self.header)[:200]])
        assert hits  # the lease, at least
        return [h for h in hits if not h.guarded]


@pytest.fixture(scope="module")
def value(peer):
    return Value(peer, "fresh")


@pytest.mark.parametrize("path", ["/slow/0", "/hang", "/mirror", "/bighead/3", "/reset/8"])
def test_credential_of_a_stream_is_gone_with_its_frame(peer, value, path):
    """The connections of both sides are open, nothing was sent since."""
    peer.peer.offers("h2")
    with Client(peer.sandboxes[0]) as client:
        client.begin({"path": path})
        seen = peer.wait(lambda: peer.peer.seen(path=path), 5, "the request")[-1]
        time.sleep(0.3)  # and its answer, where there is one
        assert dict(seen["headers"])["authorization"] == value.header
        assert value.unguarded() == []


def test_answer_that_echoes_it_to_a_client_of_http1(peer, value):
    r = curl(peer.sandboxes[0], "/mirror", "--http1.1", "-i")
    assert "x-echo: Bearer [REDACTED]" in r.stdout and value.text not in r.stdout, r.stdout
    assert value.unguarded() == []


def test_credential_in_several_frames(peer):
    """HEADERS and CONTINUATION."""
    long = Value(peer, "long", 700)
    with Client(peer.sandboxes[0]) as client:
        assert client.ask("/slow/0.1")["status"] == 200
        seen = peer.peer.seen(path="/slow/0.1")[-1]
        assert dict(seen["headers"])["authorization"] == long.header
        assert long.unguarded() == []
