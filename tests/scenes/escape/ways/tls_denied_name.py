# SPDX-License-Identifier: Apache-2.0
"""TLS for a name that policy does not allow.

recorded: 4=policy 6=policy
"""
from attack import attempt


def way(a):
    a.tls(443, f'{a.label}.evil.test')


attempt(way)
