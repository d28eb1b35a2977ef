# SPDX-License-Identifier: Apache-2.0
"""A ping to the neighbour.

unheard: the neighbour's fence keeps strangers out as well
recorded: 4=~policy 6=~policy
"""
from attack import attempt, icmp6


def way(a):
    a.frame(a.packet(58, icmp6(128, 0, b'\0\x07\0\x07' + a.mark, a.own, a.neighbour), to=a.neighbour) if a.family == 6
            else a.packet(1, a.echo(), to=a.neighbour))


attempt(way)
