# SPDX-License-Identifier: Apache-2.0
"""DNS over HTTPS, by its name.

recorded: 4=policy 6=policy
"""
from attack import attempt


def way(a):
    a.tls(443, 'dns.google', data=b'GET /dns-query?dns=%s HTTP/1.1\r\nHost: dns.google\r\n\r\n' % a.mark)


attempt(way)
