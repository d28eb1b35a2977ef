# SPDX-License-Identifier: Apache-2.0
"""Rarer kinds of ICMP carry bytes as well.

recorded: 4=protocol 6=no_flow
"""
from attack import attempt, icmp, icmp6


def way(a):
    a.frame(a.packet(58, icmp6(200, 0, bytes(4) + a.mark, a.own, a.target)) if a.family == 6
            else a.packet(1, icmp(13, 0, bytes(16) + a.mark)))


attempt(way)
