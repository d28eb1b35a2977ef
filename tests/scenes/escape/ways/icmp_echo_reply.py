# SPDX-License-Identifier: Apache-2.0
"""An answer nobody asked for.

recorded: 4=no_flow 6=no_flow
"""
from attack import attempt, icmp, icmp6


def way(a):
    a.frame(a.packet(58, icmp6(129, 0, b'\0\x07\0\x07' + a.mark, a.own, a.target)) if a.family == 6
            else a.packet(1, icmp(0, 0, b'\0\x07\0\x07' + a.mark)))


attempt(way)
