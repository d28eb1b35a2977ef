# SPDX-License-Identifier: Apache-2.0
"""Segments that pose as answers of a daemon inside to a connection of the node.

The fence lets such answers in where there is an ingress or a lifecycle API.

unrecorded: no connection; answered by a reset, or dropped with others of its kind
"""
from attack import ACK, FIN, PSH, RST, SYN, attempt


def way(a):
    for to in (a.target, a.node, a.gateway):
        for own_port in (44772, 18080, 8000):
            for flags in (SYN | ACK, ACK, PSH | ACK, FIN | ACK, RST, RST | ACK):
                a.frame(a.tcp_packet(9999, flags, to=to, own_port=own_port))


attempt(way)
