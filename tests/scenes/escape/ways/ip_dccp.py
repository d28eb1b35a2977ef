# SPDX-License-Identifier: Apache-2.0
"""DCCP over IP.

recorded: 4=protocol 6=protocol
"""
from attack import attempt


def way(a):
    a.ip(33, bytes(20))


attempt(way)
