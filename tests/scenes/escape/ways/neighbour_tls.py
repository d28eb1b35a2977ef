# SPDX-License-Identifier: Apache-2.0
"""An allowed name at the neighbour's address.

unheard: the neighbour's fence keeps strangers out as well
unrecorded: the name is allowed and leads to its own address, wherever it was sent
"""
from attack import attempt


def way(a):
    a.tls(443, a.allowed, to=a.neighbour)


attempt(way)
