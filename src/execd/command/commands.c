/* SPDX-License-Identifier: Apache-2.0 */
/* commands.c - every execution that is known */

#include "src/execd/command/commands.h"

#include <stdlib.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/map.h"
#include "src/execd/command/command.h"
#include "src/execd/command/log.h"
#include "src/execd/execd.h"
#include "src/execd/id.h"
#include "src/execd/process/drain.h"

struct commands {
	struct execd *execd;
	struct map by_id;
	struct list running;  /* and draining */
	struct list finished; /* oldest first */
	unsigned running_count, finished_count, log_count;
	size_t text_bytes;  /* of the finished */
	uint64_t log_bytes; /* of the finished, when they finished */
};

struct commands *commands_new(struct execd *e)
{
	struct commands *t = must_alloc(sizeof(*t));

	t->execd = e;
	map_init(&t->by_id);
	list_init(&t->running);
	list_init(&t->finished);
	return t;
}

struct execd *commands_execd(const struct commands *t)
{
	return t->execd;
}

struct command *commands_find(const struct commands *t, struct span id)
{
	return map_find(&t->by_id, id);
}

bool commands_is_full(const struct commands *t)
{
	return t->running_count >= COMMANDS_RUNNING_MAX;
}

void commands_add(struct commands *t, struct command *c)
{
	id_draw(c->id);
	c->owner = t;
	must(!map_set(&t->by_id, span_str(c->id), c));
	list_push(&t->running, &c->link);
	t->running_count++;
}

/* -- forgetting ----------------------------------------------------------- */

static void log_forget(struct commands *t, struct command *c)
{
	if (c->log < 0)
		return;
	t->log_count--;
	t->log_bytes -= MIN(t->log_bytes, c->log_bytes);
	c->log = fd_close(c->log);
}

static void command_forget(struct commands *t, struct command *c)
{
	log_forget(t, c);
	(void)map_take(&t->by_id, span_str(c->id));
	list_remove(&c->link);
	t->finished_count--;
	t->text_bytes -= c->text_len;
	command_free(c);
}

static struct command *oldest_log(struct commands *t)
{
	struct command *c;

	list_for_each(it, &t->finished)
	{
		c = container_of(it, struct command, link);
		if (c->log >= 0)
			return c;
	}
	return NULL;
}

void commands_finished(struct commands *t, struct command *c)
{
	must(c->state == COMMAND_OVER);

	list_remove(&c->link);
	list_push(&t->finished, &c->link);
	t->running_count--;
	t->finished_count++;
	t->text_bytes += c->text_len;
	if (c->log >= 0) {
		c->log_bytes = command_log_bytes(c->log);
		t->log_bytes += c->log_bytes;
		t->log_count++;
	}
	while (t->log_count > COMMANDS_LOGS_MAX ||
	       (t->log_count > 1 && t->log_bytes > COMMANDS_LOG_BYTES_MAX))
		log_forget(t, oldest_log(t));
	while (t->finished_count > COMMANDS_KEPT_MAX ||
	       t->text_bytes > COMMANDS_TEXT_MAX)
		command_forget(t,
			       list_first(&t->finished, struct command, link));
	/* c may be gone */
}

struct commands *commands_free(struct commands *t)
{
	if (!t)
		return NULL;
	while (!list_is_empty(&t->finished))
		command_forget(t,
			       list_first(&t->finished, struct command, link));
	list_for_each(it, &t->running)
		command_free(container_of(it, struct command, link));
	map_fini(&t->by_id);
	drain_free_all();
	free(t);
	return NULL;
}
