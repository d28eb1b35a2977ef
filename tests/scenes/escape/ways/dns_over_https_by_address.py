# SPDX-License-Identifier: Apache-2.0
"""DNS over HTTPS, by address.

recorded: 4=policy 6=policy
"""
from attack import attempt


def way(a):
    a.tls(443, None, data=b'GET /dns-query?dns=%s HTTP/1.1\r\nHost: resolver\r\n\r\n' % a.mark, alpn=['http/1.1'])


attempt(way)
