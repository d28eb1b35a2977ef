# SPDX-License-Identifier: Apache-2.0
"""An allowed name in the handshake, another address below it (case 3).

unrecorded: the name is allowed and leads to its own address, wherever it was sent
"""
from attack import attempt


def way(a):
    a.tls(443, a.allowed)


attempt(way)
