# SPDX-License-Identifier: Apache-2.0
"""A frame to the neighbour's card.

unheard: no bridge between the links
unrecorded: the kernel throws away what is for another card
"""
from attack import attempt


def way(a):
    a.frame(a.udp_packet(9999, to=a.neighbour), to=b'\x02neigh')


attempt(way)
