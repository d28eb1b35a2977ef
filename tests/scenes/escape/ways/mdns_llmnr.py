# SPDX-License-Identifier: Apache-2.0
"""Names asked of everybody on the link.

unheard: multicast ends at the link
recorded: 4=~group 6=~source
"""
from attack import attempt, dns_question


def way(a):
    a.udp(5355, dns_question(f'{a.label}', 1), to='ff02::1:3%' + a.interface if a.family == 6 else '224.0.0.252')


attempt(way)
