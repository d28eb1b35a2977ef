# SPDX-License-Identifier: Apache-2.0
"""A datagram in pieces: only the first has ports.

unheard: the mark is cut apart where a plain node does not put it together
recorded: 4=policy 6=policy
"""
from attack import attempt, fragments


def way(a):
    body = a.udp_packet(9999, a.mark * 4)[40 if a.family == 6 else 20:]
    pieces = [(0, body[:24], True), (24, body[24:], False)]
    fragments(a, 17, pieces)


attempt(way)
