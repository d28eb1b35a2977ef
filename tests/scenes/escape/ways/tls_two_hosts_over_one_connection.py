# SPDX-License-Identifier: Apache-2.0
"""A second request, for another host, on an allowed connection (case 15).

unheard: behind a plain node nobody looks at the Host
recorded: 4=~misdirected 6=~misdirected
"""
from attack import attempt


def way(a):
    a.tls(443, a.inspected, to=a.origin, data=b'GET / HTTP/1.1\r\nHost: %s\r\n\r\n'
          b'GET /%s HTTP/1.1\r\nHost: evil.test\r\n\r\n' % (a.inspected.encode(), a.mark))


attempt(way)
