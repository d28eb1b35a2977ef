# SPDX-License-Identifier: Apache-2.0
"""SOCKS5 to the courtesy proxy for an address that is not allowed.

unheard: no proxy listens behind a plain node
recorded: 4=client_aborted 6=client_aborted
"""
from attack import attempt, answer, packed


def way(a):
    kind = b'\x04' if a.family == 6 else b'\x01'
    with a.connect(3128, a.proxy) as s:
        s.sendall(b'\x05\x01\x00')
        answer(s)
        s.sendall(b'\x05\x01\x00' + kind + packed(a.target) + b'\x01\xbb')
        answer(s)
        s.sendall(a.mark)
        answer(s)


attempt(way)
