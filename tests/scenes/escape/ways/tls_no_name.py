# SPDX-License-Identifier: Apache-2.0
"""TLS without a server name (case 12).

recorded: 4=policy 6=policy
"""
from attack import attempt


def way(a):
    a.tls(443, None)


attempt(way)
