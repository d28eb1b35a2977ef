/* SPDX-License-Identifier: Apache-2.0 */
/* metadata.c - what may be a label */

#include "src/control/lifecycle/metadata.h"

#include <stdbool.h>

#include "src/base/chars.h"
#include "src/control/lifecycle/create_request.h"

enum { PREFIX_MAX = 253, LABEL_MAX = 63 };

#define RESERVED SPAN("opensandbox.io/")

static bool is_label(struct span s)
{
	size_t i;

	if (!s.len || s.len > LABEL_MAX || !char_is_alnum(s.ptr[0]) ||
	    !char_is_alnum(s.ptr[s.len - 1]))
		return false;
	for (i = 0; i < s.len; i++)
		if (!char_is_alnum(s.ptr[i]) && s.ptr[i] != '-' &&
		    s.ptr[i] != '_' && s.ptr[i] != '.')
			return false;
	return true;
}

/* Lower-case labels with dots between. */
static bool is_prefix(struct span s)
{
	struct span label, rest = s;
	size_t i;

	if (!s.len || s.len > PREFIX_MAX || s.ptr[s.len - 1] == '.')
		return false;
	while (rest.len) {
		label = span_cut(&rest, '.');
		if (!is_label(label))
			return false;
		for (i = 0; i < label.len; i++)
			if (label.ptr[i] == '_' ||
			    (label.ptr[i] >= 'A' && label.ptr[i] <= 'Z'))
				return false;
	}
	return true;
}

static int refuse(struct lifecycle_error *no, const char *what,
		  struct span text)
{
	return lifecycle_error_set(no, 400, "SANDBOX::INVALID_METADATA_LABEL",
				   "metadata: \"%.*s\" %s", SPAN_FMT(text),
				   what);
}

int metadata_check(struct span name, struct span value,
		   struct lifecycle_error *no)
{
	size_t slash = span_find(name, '/');
	struct span label = name;

	if (span_starts(name, RESERVED))
		return refuse(no, "has a prefix that is the server's own",
			      name);
	if (slash < name.len) {
		if (!is_prefix(span_of(name.ptr, slash)))
			return refuse(no, "has a prefix that is no DNS name",
				      name);
		label = span_from(name, slash + 1);
	}
	if (!is_label(label))
		return refuse(no,
			      "is no name: 1 to 63 letters, digits, '-', "
			      "'_' or '.', letters or digits at its ends",
			      name);
	if (value.len && !is_label(value))
		return refuse(no,
			      "is no value: at most 63 letters, digits, "
			      "'-', '_' or '.', letters or digits at its "
			      "ends",
			      value);
	return 0;
}

int metadata_check_count(size_t names, struct lifecycle_error *no)
{
	if (names <= METADATA_NAMES_MAX)
		return 0;
	return lifecycle_error_set(no, 400, "SANDBOX::INVALID_METADATA_LABEL",
				   "metadata: %zu names, at most %d", names,
				   METADATA_NAMES_MAX);
}
