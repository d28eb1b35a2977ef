# SPDX-License-Identifier: Apache-2.0
"""SCTP over IP."""
from attack import attempt


def way(a):
    a.ip(132, bytes(20))


attempt(way)
