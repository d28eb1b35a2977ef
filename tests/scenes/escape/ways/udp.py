# SPDX-License-Identifier: Apache-2.0
"""A datagram to any port.

recorded: 4=policy 6=policy
"""
from attack import attempt


def way(a):
    a.udp(9999)


attempt(way)
