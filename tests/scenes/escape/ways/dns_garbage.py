# SPDX-License-Identifier: Apache-2.0
"""No DNS at all, to its port.

recorded: 4=malformed 6=malformed
"""
from attack import attempt


def way(a):
    a.udp(53)


attempt(way)
