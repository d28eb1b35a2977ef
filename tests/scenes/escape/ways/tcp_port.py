# SPDX-License-Identifier: Apache-2.0
"""A TCP connection to a port nobody named.

recorded: 4=policy 6=policy
"""
from attack import attempt


def way(a):
    a.tcp(8081)


attempt(way)
