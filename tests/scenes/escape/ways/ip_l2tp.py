# SPDX-License-Identifier: Apache-2.0
"""L2TP over IP."""
from attack import attempt


def way(a):
    a.ip(115, bytes(20))


attempt(way)
