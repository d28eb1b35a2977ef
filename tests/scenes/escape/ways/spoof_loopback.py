# SPDX-License-Identifier: Apache-2.0
"""A loopback address as ours.

unheard: a martian
recorded: 4=source 6=source
"""
from attack import attempt


def way(a):
    a.frame(a.udp_packet(9999, source='::1' if a.family == 6 else '127.0.0.1'))


attempt(way)
