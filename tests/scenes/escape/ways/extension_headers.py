# SPDX-License-Identifier: Apache-2.0
"""Hop-by-hop and destination options in front of UDP.

recorded: 6=policy
"""
from attack import attempt


def way(a):
    options = bytes([60, 0, 1, 4]) + bytes(4) + bytes([17, 0, 1, 4]) + bytes(4)
    a.frame(a.packet(0, options + a.udp_packet(9999)[40:]))


attempt(way, (6,))
