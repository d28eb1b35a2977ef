# SPDX-License-Identifier: Apache-2.0
"""DNS over TLS.

recorded: 4=policy 6=policy
"""
from attack import attempt


def way(a):
    a.tls(853, f'{a.label}.resolver.test')


attempt(way)
