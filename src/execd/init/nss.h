/* SPDX-License-Identifier: Apache-2.0 */
/* nss.h - the CA in the browser's certificate database of our user
 *
 * Chromium reads $HOME/.pki/nssdb besides the system's roots. Its format is
 * NSS's own; an image that has certutil (libnss3-tools, nss-tools) gets the CA
 * in there, another one does not.
 */
#pragma once

struct execd;
struct nss;

/* Begins, if there is something to do, and calls done from the loop, once, in
 * any case and after NSS_MAX_MS at the latest. NULL: done will not be called.
 */
enum { NSS_MAX_MS = 3000 };
struct nss *nss_new(struct execd *e, const char *ca, void (*done)(void *ctx),
		    void *ctx);
/* NULL is fine; returns NULL. */
struct nss *nss_free(struct nss *n);
