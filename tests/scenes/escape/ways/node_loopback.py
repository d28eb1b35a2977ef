# SPDX-License-Identifier: Apache-2.0
"""The node's loopback addresses, sent to its card.

unheard: a martian
recorded: 4=~policy
"""
from attack import attempt, SYN


def way(a):
    to = '::1' if a.family == 6 else '127.0.0.1'
    a.frame(a.tcp_packet(8080, SYN, to=to))
    a.frame(a.udp_packet(9999, to=to))


attempt(way)
