# SPDX-License-Identifier: Apache-2.0
"""A tunnel's first packet.

recorded: 4=policy 6=policy
"""
from attack import attempt


def way(a):
    a.udp(51820, b'\x01' + bytes(147))


attempt(way)
