# SPDX-License-Identifier: Apache-2.0
"""STUN, to find a way through and a relay.

recorded: 4=policy 6=policy
"""
from attack import attempt


def way(a):
    a.udp(3478, b'\0\x01\0\0\x21\x12\xa4\x42' + bytes(12))


attempt(way)
