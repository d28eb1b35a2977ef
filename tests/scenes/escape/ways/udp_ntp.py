# SPDX-License-Identifier: Apache-2.0
"""Time is asked of everybody.

recorded: 4=policy 6=policy
"""
from attack import attempt


def way(a):
    a.udp(123, b'\x1b' + bytes(47))


attempt(way)
