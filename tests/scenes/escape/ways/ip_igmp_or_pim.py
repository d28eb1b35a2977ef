# SPDX-License-Identifier: Apache-2.0
"""Protocols of multicast routing.

recorded: 4=router 6=protocol
"""
from attack import attempt


def way(a):
    a.ip(103 if a.family == 6 else 2, bytes(8))


attempt(way)
