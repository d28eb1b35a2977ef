# SPDX-License-Identifier: Apache-2.0
"""To everybody on the link.

recorded: 4=~group
"""
from attack import attempt


def way(a):
    a.udp(9999, to='255.255.255.255')
    a.udp(9999, to=a.own.rsplit('.', 1)[0] + '.255')


attempt(way, (4,))
