# SPDX-License-Identifier: Apache-2.0
"""Bytes behind the last header.

recorded: 6=protocol
"""
from attack import attempt


def way(a):
    a.frame(a.packet(59, a.mark))


attempt(way, (6,))
