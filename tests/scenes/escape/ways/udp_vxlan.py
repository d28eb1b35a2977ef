# SPDX-License-Identifier: Apache-2.0
"""A whole Ethernet in UDP.

recorded: 4=policy 6=policy
"""
from attack import attempt


def way(a):
    a.udp(4789, b'\x08' + bytes(7) + a.mac * 2)


attempt(way)
