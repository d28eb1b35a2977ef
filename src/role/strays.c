/* SPDX-License-Identifier: Apache-2.0 */
/* strays.c - look now and then, and remove what stays a stray */

#include "src/role/strays.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/err.h"
#include "src/base/log.h"
#include "src/io/loop.h"
#include "src/role/config.h"
#include "src/role/links.h"

enum {
	REMOVED_MAX = 256, /* in one look */
	DIGITS = 7,
};

/* -- which ----------------------------------------------------------------- */

struct stray_look {
	uint64_t since_ms, look;
	uint32_t index; /* the name may be another device's by now */
};

void stray_looks_init(struct stray_looks *all)
{
	*all = (struct stray_looks){ 0 };
	map_init(&all->by_name);
}

void stray_looks_fini(struct stray_looks *all)
{
	size_t cursor = 0;
	struct span name;
	void *look;

	while ((look = map_next(&all->by_name, &cursor, &name)))
		free(look);
	map_fini(&all->by_name);
}

void stray_looks_begin(struct stray_looks *all)
{
	struct stray_look *s;
	size_t cursor = 0;
	struct span name;

	while ((s = map_next(&all->by_name, &cursor, &name)))
		if (s->look != all->look) {
			(void)map_take(&all->by_name, name);
			free(s);
		}
	all->look++;
}

/* "veth" and seven hexadecimal digits. */
static bool is_named_by_docker(const char *name)
{
	const size_t prefix = strlen("veth");

	return !strncmp(name, "veth", prefix) &&
	       strlen(name) == prefix + DIGITS &&
	       strspn(name + prefix, "0123456789abcdef") == DIGITS;
}

/* Of the bridge that is Docker's and ours; what an operator made is his. */
static bool leads_nowhere(const struct link *link)
{
	return !link->gone && link->is_veth && !link->is_far &&
	       !strcmp(link->master, CONFIG_BRIDGE) &&
	       is_named_by_docker(link->name);
}

bool stray_looks_see(struct stray_looks *all, const struct link *link,
		     uint64_t now_ms)
{
	struct span name = span_str(link->name);
	struct stray_look *s;

	if (!leads_nowhere(link))
		return false;
	s = map_find(&all->by_name, name);
	if (!s) {
		s = must_alloc(sizeof(*s));
		(void)map_set(&all->by_name, name, s);
	}
	if (s->index != link->index) {
		s->index = link->index;
		s->since_ms = now_ms;
	}
	s->look = all->look;
	return now_ms - s->since_ms >= STRAY_MS;
}

/* -- the object ------------------------------------------------------------ */

struct strays {
	struct loop *loop;
	struct timer timer;
	struct stray_looks looks;
	struct link found[REMOVED_MAX]; /* in this look */
	unsigned count;
};

static void on_link(void *ctx, const struct link *link)
{
	struct strays *s = ctx;

	if (stray_looks_see(&s->looks, link, loop_now_ms(s->loop)) &&
	    s->count < REMOVED_MAX)
		s->found[s->count++] = *link;
}

static void stray_remove(const struct link *link)
{
	int r = link_remove(link->index);

	if (!r)
		log_warn("removed %s, a port of " CONFIG_BRIDGE
			 " that leads nowhere",
			 link->name);
	else if (r != -ENODEV) /* with its other end, or by itself */
		log_error("could not remove %s: %s", link->name, err_text(r));
}

static void on_timer(struct timer *t)
{
	struct strays *s = container_of(t, struct strays, timer);
	unsigned i;
	int r;

	s->count = 0;
	stray_looks_begin(&s->looks);
	r = links_each(on_link, s);
	for (i = 0; !r && i < s->count; i++)
		stray_remove(&s->found[i]);
	timer_start(t, STRAY_LOOK_MS);
}

struct strays *strays_new(struct loop *loop, const struct config *config)
{
	struct strays *s;

	if (!config->lifecycle_listen.port)
		return NULL;
	s = must_alloc(sizeof(*s));
	s->loop = loop;
	stray_looks_init(&s->looks);
	timer_init(&s->timer, loop, on_timer);
	timer_start(&s->timer, STRAY_LOOK_MS);
	return s;
}

struct strays *strays_free(struct strays *s)
{
	if (!s)
		return NULL;
	timer_stop(&s->timer);
	stray_looks_fini(&s->looks);
	free(s);
	return NULL;
}
