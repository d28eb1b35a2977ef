# SPDX-License-Identifier: Apache-2.0
"""The neighbour's address as ours.

unheard: reverse path: some kernels drop it by themselves
recorded: 4=source 6=source
"""
from attack import attempt, SYN


def way(a):
    a.frame(a.udp_packet(9999, source=a.neighbour))
    a.frame(a.tcp_packet(443, SYN, source=a.neighbour))


attempt(way)
