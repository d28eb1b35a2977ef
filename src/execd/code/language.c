/* SPDX-License-Identifier: Apache-2.0 */
/* language.c - the languages that an interpreter of the image can run */

#include "src/execd/code/language.h"

#include <errno.h>
#include <inttypes.h>

#include "src/base/buf.h"
#include "src/execd/code/drivers.h"

static const struct language languages[] = {
	{
		.name = SPAN_INIT("python"),
		.programs = { "python3", "python" },
		.options = { "-c", "exec(compile(open(3,'rb',closefd=False)"
				   ".read(%zu),'<sallyport>','exec'),"
				   "{'__file__':'<sallyport>'})" },
		.driver = driver_py,
		.driver_len = &driver_py_len,
	},
	{
		.name = SPAN_INIT("javascript"),
		.programs = { "node", "nodejs" },
		.options = { "-e", "(()=>{const f=require('fs'),"
				   "b=Buffer.alloc(%zu);let n=0;"
				   "while(n<b.length)"
				   "n+=f.readSync(3,b,n,b.length-n);"
				   "new Function('require','process',String(b))"
				   "(require,process)})()" },
		.driver = driver_js,
		.hears_interrupts = true,
		.driver_len = &driver_js_len,
	},
	{
		.name = SPAN_INIT("bash"),
		.programs = { "bash", "sh" },
		.options = { "-s" },
		.driver = driver_sh,
		.driver_len = &driver_sh_len,
		.is_shell = true,
	},
};

const struct language *language_find(struct span name)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(languages); i++)
		if (span_eq(name, languages[i].name))
			return &languages[i];
	return NULL;
}

const struct language *language_at(size_t i)
{
	return i < ARRAY_LEN(languages) ? &languages[i] : NULL;
}

const char *language_names(void)
{
	return "python, javascript, bash";
}

/* Inside single quotes only the quote itself has a meaning. */
static int put_quoted(struct buf *out, struct span code)
{
	struct span part;
	int r;

	r = buf_put(out, SPAN("'"));
	while (!r && code.len) {
		part = span_of(code.ptr, span_find(code, '\''));
		r = buf_put(out, part);
		code = span_from(code, part.len);
		if (!r && code.len) {
			r = buf_put(out, SPAN("'\\''"));
			code = span_from(code, 1);
		}
	}
	return r ? r : buf_put(out, SPAN("'"));
}

/* driver.sh tells why it looks like this. */
static int put_shell_cell(struct buf *out, uint64_t run, struct span code)
{
	int r;

	if (memchr(code.ptr, '\0', code.len))
		return -EINVAL;
	r = buf_putf(out,
		     "__sallyport_run=%" PRIu64 "\n__sallyport_code=", run);
	if (!r)
		r = put_quoted(out, code);
	if (!r)
		r = buf_put_str(
			out,
			"\neval \"$__sallyport_before\"\nwhile :; do eval "
			"\"$__sallyport_code\" "
			"3>&- </dev/null; { __sallyport_status=$?; set +x; } "
			"2>/dev/null; break; done\n"
			"eval \"$__sallyport_after\"\n");
	return r;
}

int language_request(struct buf *out, const struct language *l, uint64_t run,
		     struct span code)
{
	int r;

	if (l->is_shell)
		return put_shell_cell(out, run, code);
	r = buf_putf(out, "run %" PRIu64 " %zu\n", run, code.len);
	return r ? r : buf_put(out, code);
}
