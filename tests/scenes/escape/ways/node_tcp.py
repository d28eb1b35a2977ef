# SPDX-License-Identifier: Apache-2.0
"""Services of the node, at its near and its far address.

recorded: 4=~policy 6=~policy
"""
import contextlib

from attack import attempt


def way(a):
    for to in (a.gateway, a.node):
        for port in (22, 8080):
            with contextlib.suppress(OSError):
                a.tcp(port, to=to)


attempt(way)
