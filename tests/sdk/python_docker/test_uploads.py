# SPDX-License-Identifier: Apache-2.0
"""Large files on their way in, through the ingress, by the official Python SDK"""
import hashlib
import os

from opensandbox.models.filesystem import WriteEntry


def test_as_fast_as_the_sender_can(make):
    """Newer SDKs send chunks, older ones a length: neither may come to a halt
    when the server inside is slower than the client."""
    sandbox = make()
    for _ in range(20):
        files = {f"/tmp/in/{n}": os.urandom(n) for n in (0, 1, 65_536, 1_000_003, 3_000_000)}
        sandbox.files.write_files([WriteEntry(path=p, data=d, mode=644)
                                   for p, d in files.items()])
    for path, data in files.items():
        got = sandbox.files.read_bytes(path)
        assert hashlib.sha256(got).digest() == hashlib.sha256(data).digest(), path
