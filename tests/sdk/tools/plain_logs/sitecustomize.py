# SPDX-License-Identifier: Apache-2.0
"""sitecustomize.py - the official MCP server's logs without rich

Every error of the API reaches that server (1.1.1) as an exception that is its own
cause: the SDK raises "e from e" where e is of its own kind already. The server
logs what a tool raised through rich, which follows causes without looking for
an end; then it answers nothing any more. A handler that is there before is kept.
"""
import logging

logging.basicConfig(format="%(message)s")
