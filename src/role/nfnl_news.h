/* SPDX-License-Identifier: Apache-2.0 */
/* nfnl_news.h - hearing that somebody else changed a table of ours */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"

/* A non-blocking socket that gets the kernel's notifications about nf_tables,
 * or -errno. Needs CAP_NET_ADMIN. */
WUNRES int nfnl_news_open(void);

enum nfnl_news {
	NFNL_NEWS_END,	 /* nothing more to read for now */
	NFNL_NEWS_OTHER, /* nothing of ours, or our own doing */
	NFNL_NEWS_OURS,	 /* a table of this name was changed by another, or
			  * notifications were lost */
};

/* Reads one datagram. port: whose changes are our own (nfnl_open()). */
enum nfnl_news nfnl_news_read(int fd, const char *table, uint32_t port);
