/* SPDX-License-Identifier: Apache-2.0 */
/* diagnosis.c - lines of text about a sandbox */

#include "src/control/lifecycle/diagnosis.h"

#include <stdio.h>

#include "src/base/addr.h"
#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/lifecycle/box.h"
#include "src/control/lifecycle/rfc3339.h"
#include "src/text/json.h"

enum { WORD_MAX = 256, EVENTS = 4 };

/* Foreign text on one line. */
static void put_line(struct buf *out, const char *name, struct span value)
{
	char text[WORD_MAX];

	if (value.len)
		(void)!buf_putf(out, "%s: %s\n", name,
				log_escape(value, text, sizeof(text)));
}

static void put_time(struct buf *out, const char *name, uint64_t ms)
{
	char text[CLOCK_TEXT_SIZE];

	if (!ms)
		return;
	clock_text(ms, text, sizeof(text));
	put_line(out, name, span_str(text));
}

static void put_addr(struct buf *out, const char *name, const struct addr *a)
{
	static const struct addr none;
	char text[ADDR_TEXT_SIZE];

	if (!addr_eq_ip(a, &none))
		put_line(out, name, span_str(addr_text(a, text, sizeof(text))));
}

static void put_number(struct buf *out, const char *name, const struct json *j)
{
	int64_t value;

	if (json_i64(j, &value))
		(void)!buf_putf(out, "%s: %lld\n", name, (long long)value);
}

static void put_container(struct buf *out, const struct json *container)
{
	const struct json *state = json_find(container, "State");

	put_line(out, "Container state", json_text(json_find(state, "Status")));
	put_line(out, "Started", json_text(json_find(state, "StartedAt")));
	put_line(out, "Finished", json_text(json_find(state, "FinishedAt")));
	put_number(out, "Exit status", json_find(state, "ExitCode"));
	if (json_bool(json_find(state, "OOMKilled")))
		put_line(out, "Out of memory", SPAN("yes"));
	put_line(out, "Container error", json_text(json_find(state, "Error")));
	put_number(out, "Restarts", json_find(container, "RestartCount"));
	put_line(out, "Image id", json_text(json_find(container, "Image")));
}

void diagnosis_put_state(struct buf *out, const struct box *b,
			 const struct json *container)
{
	put_line(out, "Sandbox", span_str(b->id));
	put_line(out, "State", span_str(box_state_name(b->state)));
	put_line(out, "Reason", span_str(b->reason));
	put_line(out, "Message", span_str(b->message));
	put_line(out, "Image", b->image);
	put_line(out, "Snapshot", b->snapshot_id);
	put_time(out, "Created", b->created_ms);
	put_time(out, "Expires", b->expires_ms);
	put_addr(out, "IPv4", &b->v4);
	put_addr(out, "IPv6", &b->v6);
	put_line(out, "Container", span_str(b->container));
	if (container)
		put_container(out, container);
}

/* -- events --------------------------------------------------------------- */

struct event {
	uint64_t ms;
	const char *source, *kind, *name;
	char text[WORD_MAX];
};

/* Docker says "0001-01-01..." for never, which is no time here. */
static struct event *event_at(struct event *e, struct span time,
			      const char *kind, const char *name)
{
	uint64_t ms;

	if (!rfc3339_parse(time, &ms))
		return NULL;
	*e = (struct event){ ms, "container", kind, name, "" };
	return e;
}

static unsigned container_events(struct event *all,
				 const struct json *container)
{
	const struct json *state = json_find(container, "State");
	bool oom = json_bool(json_find(state, "OOMKilled"));
	int64_t status = 0;
	struct event *e;
	unsigned n = 0;

	e = event_at(&all[n], json_text(json_find(state, "StartedAt")),
		     "Normal", "Started");
	if (e) {
		(void)snprintf(e->text, sizeof(e->text),
			       "The container was started.");
		n++;
	}
	(void)json_i64(json_find(state, "ExitCode"), &status);
	e = event_at(&all[n], json_text(json_find(state, "FinishedAt")),
		     status ? "Warning" : "Normal", "Exited");
	if (e) {
		(void)snprintf(e->text, sizeof(e->text),
			       "The container ended with status %lld%s.",
			       (long long)status, oom ? ", out of memory" : "");
		n++;
	}
	return n;
}

static void events_sort(struct event *all, unsigned n)
{
	struct event moved;
	unsigned i, k;

	for (i = 1; i < n; i++) {
		moved = all[i];
		for (k = i; k && all[k - 1].ms > moved.ms; k--)
			all[k] = all[k - 1];
		all[k] = moved;
	}
}

void diagnosis_put_events(struct buf *out, const struct box *b,
			  const struct json *container, uint64_t most)
{
	struct event all[EVENTS] = {
		{ b->created_ms, "sandbox", "Normal", "Created",
		  "The sandbox was asked for." },
		{ b->changed_ms, "sandbox",
		  b->state == BOX_FAILED ? "Warning" : "Normal",
		  box_state_name(b->state), "" },
	};
	char time[CLOCK_TEXT_SIZE], text[WORD_MAX];
	unsigned n = 2, i;

	(void)snprintf(all[1].text, sizeof(all[1].text), "%s", b->message);
	n += container_events(all + n, container);
	events_sort(all, n);
	for (i = n > most ? n - (unsigned)most : 0; i < n; i++) {
		clock_text(all[i].ms, time, sizeof(time));
		(void)!buf_putf(
			out, "%s %s %s %s %s\n", time, all[i].source,
			all[i].kind, all[i].name,
			log_escape(span_str(all[i].text), text, sizeof(text)));
	}
}

/* -- times ---------------------------------------------------------------- */

bool diagnosis_duration(struct span text, uint64_t *ret_s)
{
	static const struct {
		char unit;
		uint64_t s;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
	uint64_t value, scale = 1;
	size_t i;

	for (i = 0; text.len && i < ARRAY_LEN(units); i++) {
		if (text.ptr[text.len - 1] == units[i].unit) {
			scale = units[i].s;
			text.len--;
			break;
		}
	}
	return span_parse_u64(text, &value) &&
	       !__builtin_mul_overflow(value, scale, ret_s);
}
