/* SPDX-License-Identifier: Apache-2.0 */
/* execd_names.c - names are not resolved in the static daemon
 *
 * libevent's core refers to the resolver of libc, for functions that nobody
 * calls here. In a static program that would bring in NSS, which loads shared
 * objects of the machine's libc at run time. These take its place, and say no.
 */

#include <netdb.h>
#include <stddef.h>

int getaddrinfo(const char *name, const char *service,
		const struct addrinfo *hints, struct addrinfo **ret)
{
	(void)name;
	(void)service;
	(void)hints;
	*ret = NULL;
	return EAI_FAIL;
}

void freeaddrinfo(struct addrinfo *list)
{
	(void)list; /* there never was one */
}

const char *gai_strerror(int code)
{
	(void)code;
	return "names are not resolved here";
}

struct servent *getservbyname(const char *name, const char *proto)
{
	(void)name;
	(void)proto;
	return NULL;
}

struct protoent *getprotobynumber(int number)
{
	(void)number;
	return NULL;
}
