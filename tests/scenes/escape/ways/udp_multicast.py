# SPDX-License-Identifier: Apache-2.0
"""To everybody who listens to mDNS.

unheard: multicast ends at the link, and nobody on the node joined
recorded: 4=~group 6=~source
"""
from attack import attempt


def way(a):
    a.udp(5353, to='ff02::fb%' + a.interface if a.family == 6 else '224.0.0.251')


attempt(way)
