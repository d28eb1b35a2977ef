# SPDX-License-Identifier: Apache-2.0
"""UDP-Lite over IP.

recorded: 4=protocol 6=protocol
"""
from attack import attempt


def way(a):
    a.ip(136, bytes(20))


attempt(way)
