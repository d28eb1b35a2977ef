# SPDX-License-Identifier: Apache-2.0
"""The metadata service of a cloud.

unheard: there is none here; what the node would route to it is heard all the same
recorded: 4=~policy 6=~policy
"""
from attack import attempt, bracketed


def way(a):
    to = 'fd00:ec2::254' if a.family == 6 else '169.254.169.254'
    a.http(80, to, 'GET /latest/meta-data/ HTTP/1.1', f'Host: {bracketed(to)}')


attempt(way)
