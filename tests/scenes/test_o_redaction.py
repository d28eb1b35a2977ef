# SPDX-License-Identifier: Apache-2.0
"""Case 41: an origin echoes the credential in its body; the sandbox never sees it."""
import base64
import urllib.parse

import events
import pytest
from conftest import SECRET
from lab import ORIGIN4

API = "https://api.lab.test"


@pytest.fixture(scope="module")
def redacting(lab):
    """The binding of api.lab.test asks for bodies too."""
    usual = {"name": "api", "match": {"hosts": ["api.lab.test"]},
             "auth": {"type": "bearer", "credential": "api-token"}}
    lab.binding(dict(usual, redactBody=True))
    yield
    lab.binding(usual)


def shown(text):
    """Every way in which the secret could be read out of text."""
    s = SECRET.encode()
    forms = [SECRET, s.hex(), s.hex().upper(), "".join("%%%02X" % c for c in s),
             urllib.parse.quote(SECRET, safe="")]
    for pad in (b"", b"x", b"xy"):  # what does not depend on the neighbours
        forms.append(base64.b64encode(pad + s + b"zzz").decode()[4:-8])
    return [f for f in forms if f in text]


@pytest.mark.parametrize("coding", ["plain", "gzip", "deflate", "br", "zstd", "gzip, br"])
@pytest.mark.parametrize("form", ["raw", "slowly", "base64", "shifted", "twice", "hex", "percent", "json"])
def test_case_41_echo_in_a_body(lab, sandbox, redacting, form, coding):
    if form == "slowly" and coding != "plain":
        pytest.skip("an encoded body has no bytes of the secret to send slowly")
    check(lab, sandbox, f"/echo/{form}/{urllib.parse.quote(coding)}")


@pytest.mark.parametrize("size", [1, 3, 61])
@pytest.mark.parametrize("coding", ["plain", "gzip", "deflate", "br", "zstd", "gzip, br"])
@pytest.mark.parametrize("form", ["raw", "shifted"])
def test_case_41_echo_in_chunks(lab, sandbox, redacting, form, coding, size):
    check(lab, sandbox, f"/echo/{form}/{urllib.parse.quote(coding)}/{size}")


def check(lab, sandbox, path):
    status, body, err = sandbox.curl("--compressed", f"{API}{path}")
    assert status == 200, err
    assert not shown(body)
    assert body.startswith("before " * 1000) and body.endswith(" after" * 1000)
    assert "[REDACTED]" in body or "*" * 10 in body
    assert lab.record(path=path)["redactions"] >= 1


def test_lengths_stay_right(sandbox, redacting):
    r = sandbox.run("curl", "-sS", "-i", f"{API}/echo/raw/plain")
    head, _, body = r.stdout.partition("\r\n\r\n")
    length = [x for x in head.split("\r\n") if x.lower().startswith("content-length")][0]
    assert int(length.split(":")[1]) == len(body)


def test_an_encoding_that_cannot_be_opened_is_refused(lab, sandbox, redacting):
    status, body, _ = sandbox.curl(f"{API}/echo/raw/odd")
    assert status == 502 and "no_redaction" in body and not shown(body)


def test_what_could_not_be_opened_is_not_asked_for(sandbox, redacting, origin_seen):
    assert sandbox.curl("-H", "gRPC-Accept-Encoding: gzip", "-H", "Accept-Encoding: br",
                        f"{API}/asked")[0] == 200
    names = {k.lower(): v for k, v in origin_seen(path="/asked")[0]["headers"]}
    assert "grpc-accept-encoding" not in names and names["accept-encoding"] == "br"


def test_large_clean_bodies_are_untouched(sandbox, redacting):
    r = sandbox.run("sh", "-c", f"curl -sS {API}/big/{32 << 20} | cksum; "
                    f"curl -sS -k --resolve api.lab.test:443:{ORIGIN4} {API}/big/{32 << 20} | cksum")
    first, second = r.stdout.splitlines()
    block = bytes(range(256)) * 256
    import subprocess
    want = subprocess.run(["cksum"], input=block * (32 << 20 >> 16), capture_output=True).stdout
    assert first == second == want.decode().strip()


@pytest.mark.parametrize("coding", ["plain", "gzip", "deflate", "br", "zstd"])
def test_events_are_not_held_back(sandbox, redacting, coding):
    late = events.delays(sandbox, f"/events/{coding}")
    assert len(late) == 5 and max(late) < events.APART_S, late


def test_without_being_asked_bodies_pass_as_they_are(lab, sandbox):
    lab.binding({"name": "api", "match": {"hosts": ["api.lab.test"]},
                 "auth": {"type": "bearer", "credential": "api-token"}})
    status, body, _ = sandbox.curl(f"{API}/echo/raw/plain")
    assert status == 200 and SECRET in body  # heads only, as documented
