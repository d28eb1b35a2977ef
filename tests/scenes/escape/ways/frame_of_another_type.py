# SPDX-License-Identifier: Apache-2.0
"""Ethernet that is not IP.

unheard: nobody forwards it; the listeners hear the node's side of other links
recorded: 4=~frame
"""
from attack import attempt


def way(a):
    a.frame(a.mark, 0x88B5)


attempt(way, (4,))
