# SPDX-License-Identifier: Apache-2.0
"""The neighbour's UDP ports.

unheard: the neighbour's fence keeps strangers out as well
recorded: 4=~policy 6=~policy
"""
from attack import attempt


def way(a):
    a.udp(9999, to=a.neighbour)


attempt(way)
