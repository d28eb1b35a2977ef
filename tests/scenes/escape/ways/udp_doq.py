# SPDX-License-Identifier: Apache-2.0
"""DNS over QUIC.

recorded: 4=policy 6=policy
"""
from attack import attempt


def way(a):
    a.udp(853, b'\xc3\0\0\0\x01\x08' + bytes(8))


attempt(way)
