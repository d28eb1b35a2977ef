# SPDX-License-Identifier: Apache-2.0
"""An IP packet to a host in a frame to everybody.

unheard: a kernel forwards only what was sent to it alone
recorded: 4=policy 6=policy
"""
from attack import attempt, BROADCAST


def way(a):
    a.frame(a.udp_packet(9999), to=BROADCAST)


attempt(way)
