/* SPDX-License-Identifier: Apache-2.0 */
/* nfnl_news.h - hearing that somebody else changed a table of ours */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"

/* A non-blocking socket that gets the kernel's notifications about nf_tables,
 * or -errno. Needs CAP_NET_ADMIN. */
WUNRES int nfnl_news_open(void);

enum nfnl_news {
	NFNL_NEWS_END,	 /* nothing more to read for now */
	NFNL_NEWS_OTHER, /* nothing of ours, or our own doing */
	NFNL_NEWS_OURS, /* such a table was changed by another, or notifications
			 * were lost */
};

/* Whose changes are heeded. */
struct nfnl_interest {
	const char *tables[2]; /* by name; NULL: no more of them */
	uint32_t port; /* changes from here (nfnl_open()) and the kernel's are
			* our own doing; 0: none are */
};

/* Reads one datagram. */
enum nfnl_news nfnl_news_read(int fd, const struct nfnl_interest *in);
