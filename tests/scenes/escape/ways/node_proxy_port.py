# SPDX-License-Identifier: Apache-2.0
"""The gateway's own port, not by the kernel's way.

unheard: it is the port of the gateway itself
recorded: 4=~policy 6=~policy
"""
from attack import attempt


def way(a):
    a.tcp(15001, to=a.gateway)


attempt(way)
