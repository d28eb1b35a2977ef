# SPDX-License-Identifier: Apache-2.0
"""UDP ASSOCIATE: a proxy that would relay datagrams.

unheard: no proxy listens behind a plain node
recorded: 4=~malformed 6=~malformed
"""
from attack import attempt, answer


def way(a):
    with a.connect(3128, a.proxy) as s:
        s.sendall(b'\x05\x01\x00')
        answer(s)
        s.sendall(b'\x05\x03\x00\x01' + bytes(6))
        answer(s)
    a.udp(3128, b'\0\0\0\x01' + bytes(6), to=a.proxy)


attempt(way)
