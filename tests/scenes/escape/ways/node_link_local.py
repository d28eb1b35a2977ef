# SPDX-License-Identifier: Apache-2.0
"""The node's link-local address.

recorded: 6=~source
"""
from attack import attempt


def way(a):
    a.tcp(8080, to=f'{a.gateway_link_local}%{a.interface}')


attempt(way, (6,))
