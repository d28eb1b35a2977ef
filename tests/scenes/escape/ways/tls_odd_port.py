# SPDX-License-Identifier: Apache-2.0
"""TLS to a denied host at a port of its own."""
from attack import attempt


def way(a):
    a.tls(4444, f'{a.label}.evil.test')


attempt(way)
