# SPDX-License-Identifier: Apache-2.0
"""GRE over IP."""
from attack import attempt


def way(a):
    a.ip(47, bytes(20))


attempt(way)
