/* SPDX-License-Identifier: Apache-2.0 */
/* fault.c - reasons of system calls as answers */

#include "src/execd/files/fault.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "src/base/err.h"
#include "src/execd/files/identity.h"

/* Of a long path the end says more than the beginning. */
enum { PATH_SHOWN = 600 };

int fault_set(struct fault *f, unsigned status, enum answer_code code,
	      const char *fmt, ...)
{
	va_list args;

	if (fault_is_set(f))
		return -EINVAL;
	f->status = status;
	f->code = code;
	va_start(args, fmt);
	(void)vsnprintf(f->text, sizeof(f->text), fmt, args);
	va_end(args);
	return -EINVAL;
}

const char *fault_reason(int r)
{
	r = r < 0 ? -r : r;
	switch (r) {
	case ENOSPC:
		return "the disk is full (no space left on device)";
	case EDQUOT:
		return "the disk quota is used up";
	default:
		return err_text(r);
	}
}

unsigned fault_status(int r)
{
	r = r < 0 ? -r : r;
	return identity_current() && (r == EACCES || r == EPERM) ? 403 : 500;
}

int fault_errno(struct fault *f, int r, const char *what, const char *path)
{
	size_t len = strlen(path);
	bool missing;

	r = r < 0 ? -r : r;
	missing = r == ENOENT || r == ENOTDIR;
	(void)fault_set(f, missing ? 404 : fault_status(r),
			missing ? ANSWER_FILE_NOT_FOUND : ANSWER_RUNTIME_ERROR,
			"could not %s %s%s: %s", what,
			len > PATH_SHOWN ? "..." : "",
			len > PATH_SHOWN ? path + len - PATH_SHOWN : path,
			fault_reason(r));
	return -r;
}

void fault_answer(const struct fault *f, struct httpd_request *r)
{
	answer_error(r, f->status, f->code, "%s", f->text);
}
