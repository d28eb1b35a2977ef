# SPDX-License-Identifier: Apache-2.0
"""The Docker socket over TCP.

recorded: 4=~policy 6=~policy
"""
import contextlib

from attack import attempt


def way(a):
    for port in (2375, 2376):
        with contextlib.suppress(OSError):
            a.http(port, a.gateway, 'GET /version HTTP/1.1', 'Host: docker')


attempt(way)
