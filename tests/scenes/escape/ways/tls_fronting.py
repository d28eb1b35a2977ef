# SPDX-License-Identifier: Apache-2.0
"""An allowed name in the handshake, another host in the request (case 1).

unheard: behind a plain node nobody looks at the Host
recorded: 4=~misdirected 6=~misdirected
"""
from attack import attempt


def way(a):
    a.tls(443, a.inspected, to=a.origin, data=b'GET /%s HTTP/1.1\r\nHost: evil.test\r\n\r\n' % a.mark)


attempt(way)
