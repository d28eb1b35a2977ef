# SPDX-License-Identifier: Apache-2.0
"""DCCP over IP."""
from attack import attempt


def way(a):
    a.ip(33, bytes(20))


attempt(way)
