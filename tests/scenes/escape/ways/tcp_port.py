# SPDX-License-Identifier: Apache-2.0
"""A TCP connection to a port nobody named."""
from attack import attempt


def way(a):
    a.tcp(8081)


attempt(way)
