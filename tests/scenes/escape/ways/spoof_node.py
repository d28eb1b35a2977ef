# SPDX-License-Identifier: Apache-2.0
"""The node's own address as ours.

unheard: a martian
recorded: 4=source 6=source
"""
from attack import attempt


def way(a):
    a.frame(a.udp_packet(9999, source=a.gateway))


attempt(way)
