# SPDX-License-Identifier: Apache-2.0
"""One piece that is the whole (RFC 6946).

recorded: 6=policy
"""
from attack import attempt, fragment6


def way(a):
    a.frame(a.packet(44, fragment6(17, a.udp_packet(9999)[40:], 0, False)))


attempt(way, (6,))
