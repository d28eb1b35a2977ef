# SPDX-License-Identifier: Apache-2.0
"""A tunnel's first packet."""
from attack import attempt


def way(a):
    a.udp(51820, b'\x01' + bytes(147))


attempt(way)
