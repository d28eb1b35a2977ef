# SPDX-License-Identifier: Apache-2.0
"""A protocol for experiments (RFC 3692) over IP.

recorded: 4=protocol 6=protocol
"""
from attack import attempt


def way(a):
    a.ip(253, bytes(20))


attempt(way)
