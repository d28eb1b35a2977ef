# SPDX-License-Identifier: Apache-2.0
"""events.py - how late a client in a sandbox gets the events of /events, or of another path"""
APART_S = 0.5  # as origin.py sends them: who holds one back holds it until the next
CLIENT = """
import ssl, socket, sys, time, os
c = ssl.create_default_context(cafile=os.environ['SSL_CERT_FILE'])
s = c.wrap_socket(socket.create_connection(('api.lab.test', 443)), server_hostname='api.lab.test')
s.sendall(b'GET ' + sys.argv[1].encode() + b' HTTP/1.1\\r\\nHost: api.lab.test\\r\\nConnection: close\\r\\n\\r\\n')
while data := s.recv(65536):
    for line in data.decode().split('\\n'):
        if line.startswith('data: '):
            print(time.time() - float(line.split()[2]))
"""


def delays(sandbox, path="/events"):
    """Seconds, of each event."""
    r = sandbox.python(CLIENT, path)
    assert r.returncode == 0, r.stderr
    return [float(x) for x in r.stdout.split()]
