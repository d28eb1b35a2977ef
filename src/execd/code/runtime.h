/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.h - a second port, where clients look for a runtime of code
 *
 * Clients of the code interpreter wait until 127.0.0.1:${JUPYTER_PORT:-44771}
 * takes a connection inside the sandbox, because there a Jupyter server would
 * be. Where none is configured and the image has an interpreter, the daemon is
 * what runs code, and so it listens there as well. It is no Jupyter: behind
 * that port is the daemon's own API, with its token.
 */
#pragma once

struct execd;

enum { RUNTIME_PORT = 44771 };

/* Listens if it is due. That the port is taken is no error: somebody else takes
 * the connection then. */
void runtime_listen(struct execd *e);
