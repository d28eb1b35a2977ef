# SPDX-License-Identifier: Apache-2.0
"""SCTP over IP.

recorded: 4=protocol 6=protocol
"""
from attack import attempt


def way(a):
    a.ip(132, bytes(20))


attempt(way)
