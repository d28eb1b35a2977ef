# SPDX-License-Identifier: Apache-2.0
"""A namespace inside the sandbox, routed by it, with addresses of its own.

unheard: reverse path: the node knows no way back and some kernels drop it
recorded: 4=source
"""
from attack import attempt, nested


def way(a):
    nested(a)


attempt(way)
