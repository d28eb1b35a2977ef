/* SPDX-License-Identifier: Apache-2.0 */
/* local_start.c - the start of an interpreter: its pipes, its channel, its
 * driver
 */

#include "src/execd/code/local_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/execd/code/frame.h"
#include "src/execd/code/language.h"
#include "src/execd/command/command.h"
#include "src/execd/execd.h"
#include "src/execd/process/env.h"
#include "src/io/stream.h"

enum { OPTION_MAX = 512 };

static int start_program(struct local *l, const struct child_spec *spec,
			 const char *options, struct diag *d)
{
	const char *argv[] = { NULL, l->language->options[0], options, NULL };
	struct child_spec one = *spec;
	int i, r = -ENOENT;

	one.argv = argv;
	for (i = 0; l->language->programs[i] && r == -ENOENT; i++) {
		argv[0] = l->language->programs[i];
		*d = (struct diag){ 0 };
		r = child_start(l->execd, &l->child, &one, d);
	}
	if (r == -ENOENT && l->child.failed == CHILD_STAGE_EXEC) {
		*d = (struct diag){ 0 };
		(void)diag_set(d, 0, 0, "the image has neither %s nor %s",
			       l->language->programs[0],
			       l->language->programs[1]);
	}
	return r;
}

static int start_child(struct local *l, int channel, const int pipes[2],
		       struct diag *d)
{
	struct env *env = env_new();
	char options[OPTION_MAX];
	char *cwd CLEANUP_FREE = NULL;
	struct child_spec spec = {
		.in = l->language->is_shell ? channel : -1,
		.out = pipes[0],
		.err = pipes[1],
		.channel = channel,
	};
	const char *text = l->language->options[1];
	char length[24], *hole;
	int r;

	r = l->cwd ? command_cwd(env, span_str(l->cwd), &cwd, d) : 0;
	if (r) {
		env_free(env);
		return r;
	}
	spec.cwd = cwd;
	spec.env = env_list(env);
	if (text) {
		hole = strstr(text, "%zu");
		must(hole);
		(void)snprintf(length, sizeof(length), "%zu",
			       *l->language->driver_len);
		(void)snprintf(options, sizeof(options), "%.*s%s%s",
			       (int)(hole - text), text, length, hole + 3);
	}
	r = start_program(l, &spec, text ? options : NULL, d);
	env_free(env);
	return r;
}

static int open_channel(struct local *l, int *ret_theirs)
{
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return err_origin(-errno);
	r = fcntl(pair[0], F_SETFL, O_NONBLOCK) ? -errno : 0;
	if (!r)
		r = stream_new(l->execd->loop, pair[0], &l->channel);
	else
		(void)fd_close(pair[0]);
	if (r) {
		(void)fd_close(pair[1]);
		return r;
	}
	*ret_theirs = pair[1];
	return 0;
}

int local_start(struct local *l, struct diag *d)
{
	int theirs = -1, pipes[2] = { -1, -1 }, r;

	l->ready = l->exited = l->channel_over = l->held = false;
	l->why[0] = '\0';
	buf_init(&l->in, FRAME_MAX + LOCAL_READ_SIZE);
	buf_init(&l->request, LOCAL_REQUEST_MAX);
	l->out.fd = l->err.fd = -1;
	r = open_channel(l, &theirs);
	if (!r)
		r = output_open(&l->out, l->execd, EVENT_STDOUT, NULL,
				&pipes[0]);
	if (!r)
		r = output_open(&l->err, l->execd, EVENT_STDERR, NULL,
				&pipes[1]);
	if (!r)
		r = stream_write(l->channel, span_of(l->language->driver,
						     *l->language->driver_len));
	if (!r)
		r = start_child(l, theirs, pipes, d);
	(void)fd_close(theirs);
	(void)fd_close(pipes[0]);
	(void)fd_close(pipes[1]);
	if (r) {
		if (!diag_is_set(d))
			(void)diag_set(d, 0, 0, "no pipe or socket: %s",
				       err_text(r));
		if (l->out.fd >= 0)
			output_fini(&l->out);
		if (l->err.fd >= 0)
			output_fini(&l->err);
		l->channel = stream_free(l->channel);
		return r;
	}
	l->alive = true;
	return 0;
}
