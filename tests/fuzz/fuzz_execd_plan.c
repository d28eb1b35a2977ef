/* fuzz: execd */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_execd_plan.c - the body of an isolated session: refused with a sentence,
 * or told again as it was understood
 */

#include <stdint.h>
#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/execd/isolated/plan.h"
#include "src/execd/process/env.h"
#include "src/text/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void tell(const struct plan *p, struct buf *to)
{
	struct json_out o;

	json_start(&o, to);
	json_open_object(&o, NULL);
	plan_put(p, &o);
	json_close(&o);
	must(!json_done(&o));
}

static void check(struct plan *p)
{
	struct env *env = env_new_empty();
	unsigned i;

	must(p->workspace && p->workspace[0] == '/');
	must(p->bind_count <= PLAN_BINDS_MAX && p->key_count <= PLAN_KEYS_MAX);
	for (i = 0; i < p->bind_count; i++)
		must(p->binds[i].source[0] == '/' &&
		     p->binds[i].dest[0] == '/');
	must(!env_set(env, SPAN("A_TOKEN"), SPAN("s")));
	plan_env(p, env);
	/* it is kept only when the session asked for it by some list */
	must(p->key_count || !env_get(env, "A_TOKEN"));
	(void)env_free(env);
}

/* An extra folder and a bind are told apart, and in this order. */
static void check_told_again(const struct plan *p)
{
	struct buf told = BUF_INIT(8 << 20), again = told;
	struct diag d = { 0 };
	struct plan other;
	struct json *j;

	tell(p, &told);
	must(!json_parse(buf_peek(&told), &j, NULL));
	must(!plan_parse(j, &other, &d));
	tell(&other, &again);
	must(span_eq(buf_peek(&told), buf_peek(&again)));
	plan_fini(&other);
	json_free(j);
	buf_fini(&told);
	buf_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct diag d = { 0 };
	struct plan p;
	struct json *j;

	if (json_parse(span_of(data, size), &j, NULL))
		return 0;
	if (plan_parse(j, &p, &d)) {
		must(diag_is_set(&d));
	} else {
		check(&p);
		check_told_again(&p);
	}
	plan_fini(&p);
	json_free(j);
	return 0;
}
