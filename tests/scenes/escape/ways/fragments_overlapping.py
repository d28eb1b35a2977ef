# SPDX-License-Identifier: Apache-2.0
"""Two pieces that disagree about the ports (RFC 5722).

unheard: an honest kernel throws all of it away
unrecorded: the kernel throws pieces away that contradict each other, unless it has a packet already
"""
from attack import attempt, fragments


def way(a):
    body = a.udp_packet(53, a.mark * 2)[40 if a.family == 6 else 20:]
    other = a.udp_packet(9999, a.mark * 2)[40 if a.family == 6 else 20:]
    fragments(a, 17, [(0, body[:16], True), (0, other[:16], True), (16, body[16:], False)])


attempt(way)
