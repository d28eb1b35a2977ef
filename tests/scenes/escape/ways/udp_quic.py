# SPDX-License-Identifier: Apache-2.0
"""QUIC: an Initial packet to UDP 443 (case 54).

recorded: 4=policy 6=policy
"""
from attack import attempt


def way(a):
    a.udp(443, b'\xc3\0\0\0\x01\x08' + bytes(8) + b'\0\0\x41\x00')


attempt(way)
