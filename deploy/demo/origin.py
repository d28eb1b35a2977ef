#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""origin.py - an HTTPS server for the demonstration: notes what it was sent

origin.py ADDRESS PORT CERTIFICATE KEY NOTES

Answers every request with a short JSON text that repeats nothing it was sent,
and appends one JSON line per request, Authorization included, to NOTES.
"""
import http.server
import json
import socket
import ssl
import sys


class Origin(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    notes = None

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        self.notes.write(json.dumps({
            "method": self.command,
            "path": self.path,
            "host": self.headers.get("Host"),
            "authorization": self.headers.get_all("Authorization") or [],
        }) + "\n")
        self.notes.flush()
        allowed = "Authorization" in self.headers
        body = json.dumps({"origin": "demo", "authorised": allowed}) + "\n"
        self.send_response(200 if allowed else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body.encode())

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


def main():
    address, port, certificate, key, notes = sys.argv[1:]
    if ":" in address:
        Server.address_family = socket.AF_INET6
    Origin.notes = open(notes, "a", encoding="utf-8")
    server = Server((address, int(port)), Origin)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True,
                                        do_handshake_on_connect=False)
    server.serve_forever()


main()
