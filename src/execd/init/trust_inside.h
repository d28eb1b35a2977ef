/* SPDX-License-Identifier: Apache-2.0 */
/* trust_inside.h - between trust.c, roots.c and java.c */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "src/base/buf.h"
#include "src/base/span.h"

#define TRUST_NAME "opensandbox-mitmproxy-ca" /* of files */

enum {
	TRUST_CERTIFICATES_MAX = 256,	   /* the gateway's, the operator's */
	TRUST_FILE_MAX = 16 * 1024 * 1024, /* of a bundle, of a store */
};

/* The CA as it was read. */
struct trust {
	struct span certificates[TRUST_CERTIFICATES_MAX]; /* DER, in der */
	unsigned count;
	struct buf der;
	struct buf pem;	       /* the same, as PEM of our own spelling */
	struct buf bundle;     /* all roots and the CA, as PEM */
	char folder[PATH_MAX]; /* where our own files are; "" = nowhere */
};

/* Is the file's folder on another file system than the root folder? Then it
 * is a volume, whose other end may be someone else's: it is left alone. */
bool trust_is_volume(const char *path);

/* -- roots.c -------------------------------------------------------------- */

bool roots_is_system(const char *path);
/* Appends the system's roots, without a CA of ours. False: there are none. */
bool roots_read(struct buf *to);
/* Puts the CA into the system's stores. */
void roots_install(const struct trust *t);

/* -- java.c --------------------------------------------------------------- */

/* Puts the CA into each store of a Java run time that there is. What cannot be
 * written is stood in for by a store in t->folder and JAVA_TOOL_OPTIONS. */
void java_install(const struct trust *t);
