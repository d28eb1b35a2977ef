/* SPDX-License-Identifier: Apache-2.0 */
/* attrib.h - compiler attributes by short names, and the ownership helpers */
#pragma once

#include <stdlib.h>

#define WUNRES	     __attribute__((warn_unused_result))
#define NORETURN     __attribute__((noreturn))
#define PRINTF(f, a) __attribute__((format(printf, f, a)))
#define CLEANUP(fn)  __attribute__((cleanup(fn)))
#define LIKELY(x)    __builtin_expect(!!(x), 1)
#define UNLIKELY(x)  __builtin_expect(!!(x), 0)
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)    ((a) < (b) ? (a) : (b))
#define MAX(a, b)    ((a) > (b) ? (a) : (b))

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr)-offsetof(type, member)))

/* Ownership leaves a CLEANUP local: *ret_x = take_ptr(x). */
#define take_ptr(p)                             \
	({                                      \
		__auto_type take_ptr_tmp = (p); \
		(p) = NULL;                     \
		take_ptr_tmp;                   \
	})

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}
#define CLEANUP_FREE CLEANUP(cleanup_free)
