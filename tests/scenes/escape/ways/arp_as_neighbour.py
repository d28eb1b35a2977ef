# SPDX-License-Identifier: Apache-2.0
"""Claiming the neighbour's address by ARP.

unheard: it stays on the link: what counts is that the node believes nothing
recorded: 4=~neighbour
"""
from attack import attempt, BROADCAST, ETH_ARP, arp


def way(a):
    for kind in (1, 2):
        a.frame(arp(kind, a.mac, a.neighbour, a.gateway_mac, a.gateway) + a.mark, ETH_ARP)
        a.frame(arp(kind, a.mac, a.neighbour, BROADCAST, a.neighbour) + a.mark, ETH_ARP, BROADCAST)


attempt(way, (4,))
