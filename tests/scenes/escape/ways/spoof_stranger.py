# SPDX-License-Identifier: Apache-2.0
"""An address of nobody as ours.

unheard: reverse path: some kernels drop it by themselves
recorded: 4=source 6=source
"""
from attack import attempt, SYN


def way(a):
    who = 'fd77::1' if a.family == 6 else '10.77.0.1'
    a.frame(a.udp_packet(9999, source=who))
    a.frame(a.tcp_packet(443, SYN, source=who))


attempt(way)
