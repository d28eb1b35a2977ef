/* SPDX-License-Identifier: Apache-2.0 */
/* fake_leg.h - a scripted leg, which minds the manners of whoever uses it
 *
 * A script is what the leg gives, in order; when it is at its end there is
 * nothing now. What is said to the leg is one text in `said`: "<200>" for a
 * head, content as it is, "<end>" or "<end A=1,B=2>", "|" for a flush that had
 * something to send.
 *
 * Whoever uses it fails who writes more than there was room for, who writes to
 * one leg while the other has not sent what it has, or who uses a view after
 * the next read (it reads '#' then).
 *
 * Everything is `static inline` so that each test uses what it needs.
 */
#pragma once

#include "tests/unit/gateway/fixture.h"

#include "gateway/session/exchange.h"
#include "gateway/session/leg.h"

enum {
	FAKE_STEPS = 64,
	FAKE_CALLS_MAX = 20 * 1000, /* of one leg: else nobody bounds it */
	FAKE_ROOM = 64 * 1024,
	FAKE_SAID_MAX = 64 * 1024 * 1024,
};

/* LEG_PIECE with a head: for response(); else for read(). */
struct fake_step {
	enum leg_read got;
	const struct response *head;
	const char *text; /* content, or why */
	bool malformed, silent;
};

struct fake_leg {
	struct leg leg;
	struct fake_leg *other;
	struct fake_step steps[FAKE_STEPS];
	unsigned step_count, at;
	size_t taken;	/* of the text of the step at hand */
	char *scratch;	/* where views point */
	size_t endless; /* > 0: after the script, pieces of that size */
	const struct response *endless_head; /* and heads */
	const struct headers *trailers;
	enum leg_read ahead;
	size_t room; /* writes make it less, unless: */
	bool room_is_endless;
	int fail_write, fail_end, fail_respond, fail_flush; /* -errno */

	struct buf said;
	size_t unsent; /* bytes of said since the last flush */
	unsigned wanted, wants, calls, reads;
	bool finished, kept, broke, released;
	bool ended; /* end() was called */
};

static inline struct fake_leg *fake_of(struct leg *leg)
{
	return container_of(leg, struct fake_leg, leg);
}

/* -- the script ------------------------------------------------------------ */

static inline struct fake_step *fake_add(struct fake_leg *f, enum leg_read got,
					 const char *text)
{
	struct fake_step *step = &f->steps[f->step_count++];

	must(f->step_count <= FAKE_STEPS);
	*step = (struct fake_step){ .got = got, .text = text };
	return step;
}

static inline void fake_piece(struct fake_leg *f, const char *text)
{
	(void)fake_add(f, LEG_PIECE, text);
}

static inline void fake_head(struct fake_leg *f, const struct response *head)
{
	fake_add(f, LEG_PIECE, NULL)->head = head;
}

static inline void fake_end(struct fake_leg *f)
{
	(void)fake_add(f, LEG_END, NULL);
}

static inline struct fake_step *fake_break(struct fake_leg *f, const char *why)
{
	return fake_add(f, LEG_BROKEN, why);
}

/* -- the legs -------------------------------------------------------------- */

static inline struct fake_leg *fake_called(struct leg *leg)
{
	struct fake_leg *f = fake_of(leg);

	if (++f->calls > FAKE_CALLS_MAX)
		fail_msg("nothing bounds what is asked of this leg");
	return f;
}

/* Every read makes the views that were given before it worthless. */
static inline void fake_spoil(struct fake_leg *f)
{
	memset(f->scratch, '#', FAKE_ROOM);
	memset(f->other->scratch, '#', FAKE_ROOM);
}

static inline enum leg_read fake_broken(struct fake_leg *f,
					const struct fake_step *step)
{
	f->leg.why = step->text;
	f->leg.malformed = step->malformed;
	f->leg.silent = step->silent;
	return LEG_BROKEN;
}

static inline enum leg_read fake_give(struct fake_leg *f, struct span text,
				      size_t max, struct span *ret)
{
	*ret = span_of(f->scratch, MIN(MIN(text.len, max), (size_t)FAKE_ROOM));
	memcpy(f->scratch, text.ptr, ret->len);
	return LEG_PIECE;
}

static inline enum leg_read fake_read(struct leg *leg, size_t max,
				      struct span *ret)
{
	static const char filler[FAKE_ROOM];
	struct fake_leg *f = fake_called(leg);
	const struct fake_step *step = &f->steps[f->at];
	struct span text;

	fake_spoil(f);
	assert_true(max > 0);
	f->reads++;
	*ret = SPAN_NONE;
	if (f->at == f->step_count)
		return f->endless ? fake_give(f, span_of(filler, f->endless),
					      max, ret)
				  : LEG_NOTHING;
	if (step->got == LEG_BROKEN)
		return fake_broken(f, step);
	if (step->got == LEG_END)
		return LEG_END; /* and again, whenever it is asked */
	assert_null(step->head);
	text = span_from(span_str(step->text), f->taken);
	(void)fake_give(f, text, max, ret);
	f->taken += ret->len;
	if (ret->len == text.len) {
		f->at++;
		f->taken = 0;
	}
	return LEG_PIECE;
}

static inline enum leg_read fake_response(struct leg *leg, struct response *ret)
{
	struct fake_leg *f = fake_called(leg);
	const struct fake_step *step = &f->steps[f->at];

	fake_spoil(f);
	if (f->at == f->step_count) {
		if (!f->endless_head)
			return LEG_NOTHING;
		*ret = *f->endless_head;
		return LEG_PIECE;
	}
	if (step->got == LEG_BROKEN)
		return fake_broken(f, step);
	if (step->got == LEG_END)
		return LEG_END;
	assert_non_null(step->head);
	*ret = *step->head;
	f->at++;
	return LEG_PIECE;
}

static inline const struct headers *fake_trailers(struct leg *leg)
{
	return fake_called(leg)->trailers;
}

static inline size_t fake_room(const struct leg *leg)
{
	return container_of(leg, const struct fake_leg, leg)->room;
}

static inline void fake_say(struct fake_leg *f, struct span text)
{
	assert_int_equal(f->other->unsent, 0);
	must(!buf_put(&f->said, text));
	f->unsent += text.len;
}

/* What was not sent is lost. */
static inline int fake_failed(struct fake_leg *f, int r)
{
	f->unsent = 0;
	return r;
}

static inline int fake_write(struct leg *leg, struct span content)
{
	struct fake_leg *f = fake_called(leg);

	if (f->fail_write)
		return fake_failed(f, f->fail_write);
	assert_true(content.len > 0 && content.len <= f->room);
	assert_false(f->ended);
	if (!f->room_is_endless)
		f->room -= content.len;
	fake_say(f, content);
	return 0;
}

static inline int fake_end_op(struct leg *leg, const struct headers *trailers)
{
	struct fake_leg *f = fake_called(leg);
	unsigned i;

	if (f->fail_end)
		return fake_failed(f, f->fail_end);
	fake_say(f, SPAN("<end"));
	for (i = 0; trailers && i < trailers->count; i++) {
		fake_say(f, i ? SPAN(",") : SPAN(" "));
		fake_say(f, trailers->items[i].name);
		fake_say(f, SPAN("="));
		fake_say(f, trailers->items[i].value);
	}
	fake_say(f, SPAN(">"));
	f->ended = true;
	return 0;
}

static inline int fake_flush(struct leg *leg)
{
	struct fake_leg *f = fake_called(leg);

	if (f->fail_flush)
		return fake_failed(f, f->fail_flush);
	if (f->unsent)
		must(!buf_put_str(&f->said, "|"));
	f->unsent = 0;
	return 0;
}

static inline void fake_want(struct leg *leg, unsigned what)
{
	struct fake_leg *f = fake_called(leg);

	assert_int_equal(f->unsent, 0); /* the loop is returned to */
	f->wanted = what;
	f->wants++;
	fake_spoil(f);
}

static inline enum leg_read fake_ahead(struct leg *leg)
{
	struct fake_leg *f = fake_called(leg);

	fake_spoil(f);
	if (f->ahead == LEG_BROKEN)
		leg->why = "it left";
	return f->ahead;
}

static inline int fake_respond(struct leg *leg, struct request *request,
			       const struct response *response)
{
	struct fake_leg *f = fake_called(leg);
	char text[16];

	(void)request;
	if (f->fail_respond)
		return f->fail_respond;
	(void)snprintf(text, sizeof(text), "<%u>", response->status);
	fake_say(f, span_str(text));
	return 0;
}

static inline void fake_finished(struct leg *leg, bool keep)
{
	struct fake_leg *f = fake_called(leg);

	assert_false(f->finished || f->broke);
	f->finished = true;
	f->kept = keep;
	leg->exchange = NULL;
}

static inline void fake_broke(struct leg *leg)
{
	struct fake_leg *f = fake_called(leg);

	assert_false(f->finished || f->broke);
	f->broke = true;
	leg->exchange = NULL;
}

static inline void fake_release(struct leg *leg, bool keep)
{
	struct fake_leg *f = fake_called(leg);

	assert_false(f->released);
	f->released = true;
	f->kept = keep;
	f->unsent = 0;
	leg->exchange = NULL;
}

static inline void fake_init(struct fake_leg *f, struct fake_leg *other,
			     bool front)
{
	static const struct leg_ops front_ops = {
		.read = fake_read,
		.trailers = fake_trailers,
		.room = fake_room,
		.write = fake_write,
		.end = fake_end_op,
		.flush = fake_flush,
		.want = fake_want,
		.ahead = fake_ahead,
		.respond = fake_respond,
		.finished = fake_finished,
		.broke = fake_broke,
	};
	static const struct leg_ops back_ops = {
		.read = fake_read,
		.trailers = fake_trailers,
		.room = fake_room,
		.write = fake_write,
		.end = fake_end_op,
		.flush = fake_flush,
		.want = fake_want,
		.response = fake_response,
		.release = fake_release,
	};

	*f = (struct fake_leg){ .other = other, .room = FAKE_ROOM };
	f->leg.ops = front ? &front_ops : &back_ops;
	f->scratch = must_alloc(FAKE_ROOM);
	buf_init(&f->said, FAKE_SAID_MAX);
}

static inline void fake_fini(struct fake_leg *f)
{
	free(f->scratch);
	buf_fini(&f->said);
}
