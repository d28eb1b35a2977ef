# SPDX-License-Identifier: Apache-2.0
"""A network card that is not ours.

recorded: 4=policy 6=policy
"""
from attack import attempt


def way(a):
    a.frame(a.udp_packet(9999), source=b'\x02spoof')


attempt(way)
