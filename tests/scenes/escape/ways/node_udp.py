# SPDX-License-Identifier: Apache-2.0
"""The node's UDP ports.

recorded: 4=~policy 6=~policy
"""
from attack import attempt


def way(a):
    for to in (a.gateway, a.node):
        a.udp(9999, to=to)


attempt(way)
