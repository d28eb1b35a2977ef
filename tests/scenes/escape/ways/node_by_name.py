# SPDX-License-Identifier: Apache-2.0
"""An allowed name that resolves to the node (rebinding, case 9).

recorded: 4=~no_allowed_address 6=~no_allowed_address
"""
from attack import attempt


def way(a):
    a.tcp(8080, f'GET /{a.label} HTTP/1.1\r\nHost: rebind.lab.test:8080\r\n\r\n'.encode(), to=a.gateway)


attempt(way)
