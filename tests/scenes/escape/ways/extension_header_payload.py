# SPDX-License-Identifier: Apache-2.0
"""Bytes hidden in an option.

recorded: 6=protocol
"""
from attack import attempt


def way(a):
    data = a.mark.ljust((len(a.mark) + 4 + 7) // 8 * 8 - 4, b'\0')
    head = bytes([59, (len(data) + 4) // 8 - 1, 0x1e, len(data)]) + data
    a.frame(a.packet(0, head))


attempt(way, (6,))
