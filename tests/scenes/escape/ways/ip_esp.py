# SPDX-License-Identifier: Apache-2.0
"""IPsec ESP over IP."""
from attack import attempt


def way(a):
    a.ip(50, bytes(20))


attempt(way)
