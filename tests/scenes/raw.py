# SPDX-License-Identifier: Apache-2.0
"""raw.py tls|tcp ADDRESS PORT [SNI] - send stdin as it is, print what comes

For clients that no honest library would be. PAUSE in the input (a line of its
own) waits 0.3 s. Exits 3 on a TLS alert, 4 on a reset, 5 on a timeout.
"""
import os
import socket
import ssl
import sys
import time

kind, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
sni = sys.argv[4] if len(sys.argv) > 4 else None
try:
    sock = socket.create_connection((address, port), timeout=10)
    if kind == "tls":
        context = ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE"))
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE if os.environ.get("NO_VERIFY") else ssl.CERT_REQUIRED
        sock = context.wrap_socket(sock, server_hostname=sni)
    for i, piece in enumerate(sys.stdin.buffer.read().split(b"PAUSE\n")):
        if i:
            time.sleep(0.3)
        sock.sendall(piece)
    sock.settimeout(float(os.environ.get("WAIT", "5")))
    while True:
        data = sock.recv(65536)
        if not data:
            break
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
except ssl.SSLError as e:
    print("TLS:", e, file=sys.stderr)
    sys.exit(3)
except ConnectionError as e:
    print("RESET:", e, file=sys.stderr)
    sys.exit(4)
except TimeoutError as e:
    print("TIMEOUT:", e, file=sys.stderr)
    sys.exit(5)
