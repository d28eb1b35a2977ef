/* SPDX-License-Identifier: Apache-2.0 */
/* listen.c - sockets to listen on */

#include "src/httpd/httpd.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "src/base/err.h"
#include "src/base/fd.h"

enum {
	BACKLOG = 1024, /* the kernel may say less */
	/* A client that vanished without a word is found after 120 + 4 * 30
	 * seconds. */
	KEEPALIVE_IDLE_S = 120,
	KEEPALIVE_EVERY_S = 30,
	KEEPALIVE_PROBES = 4,
};

static int unix_address(const char *path, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (!span_copy(span_str(path), ret->sun_path, sizeof(ret->sun_path)))
		return err_origin(-ENAMETOOLONG);
	return 0;
}

/* Removes what a dead process left; 0, or -EADDRINUSE when somebody answers or
 * the file is no socket. */
static int unix_clear(const struct sockaddr_un *at)
{
	int probe CLEANUP_FD = -1;
	struct stat st;

	if (lstat(at->sun_path, &st))
		return errno == ENOENT ? 0 : err_origin(-errno);
	if (!S_ISSOCK(st.st_mode))
		return err_origin(-EADDRINUSE);
	probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (probe < 0)
		return err_origin(-errno);
	if (!connect(probe, (const struct sockaddr *)at, sizeof(*at)) ||
	    errno == EAGAIN)
		return err_origin(-EADDRINUSE);
	if (unlink(at->sun_path) && errno != ENOENT)
		return err_origin(-errno);
	return 0;
}

int httpd_bind_unix(const char *path, mode_t mode)
{
	struct sockaddr_un at;
	mode_t mask;
	int fd CLEANUP_FD = -1;
	int r, kept;

	r = unix_address(path, &at);
	if (!r)
		r = unix_clear(&at);
	if (r)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_origin(-errno);

	/* never wider than asked for, not even for a moment */
	mask = umask(0777 & ~mode);
	r = bind(fd, (struct sockaddr *)&at, sizeof(at)) ? -errno : 0;
	(void)umask(mask);
	if (r || chmod(path, mode) || listen(fd, BACKLOG))
		return err_origin(r ? r : -errno);
	kept = fd;
	fd = -1;
	return kept;
}

/* Accepted sockets inherit them. */
static void listener_options(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S },
		{ IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_EVERY_S },
		{ IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES },
	};

	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		(void)setsockopt(fd, options[i].level, options[i].name,
				 &options[i].value, sizeof(options[i].value));
}

int httpd_bind_tcp(const struct addr *at)
{
	struct sockaddr_storage where;
	const int on = 1;
	socklen_t len;
	int fd CLEANUP_FD = -1;
	int kept;

	len = addr_to_sockaddr(at, &where);
	fd = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    0);
	if (fd < 0)
		return err_origin(-errno);
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    (where.ss_family == AF_INET6 &&
	     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on))) ||
	    bind(fd, (struct sockaddr *)&where, len) || listen(fd, BACKLOG))
		return err_origin(-errno);
	listener_options(fd);
	kept = fd;
	fd = -1;
	return kept;
}
