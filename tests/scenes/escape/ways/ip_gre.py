# SPDX-License-Identifier: Apache-2.0
"""GRE over IP.

recorded: 4=protocol 6=protocol
"""
from attack import attempt


def way(a):
    a.ip(47, bytes(20))


attempt(way)
