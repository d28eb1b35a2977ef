# SPDX-License-Identifier: Apache-2.0
"""A ping to the node.

recorded: 4=~policy 6=~policy
"""
from attack import attempt, icmp6


def way(a):
    a.frame(a.packet(58, icmp6(128, 0, b'\0\x07\0\x07' + a.mark, a.own, a.gateway), to=a.gateway) if a.family == 6
            else a.packet(1, a.echo(), to=a.gateway))


attempt(way)
