/* SPDX-License-Identifier: Apache-2.0 */
/* body.h - pieces of JSON that more than one subcommand reads or sends */
#pragma once

#include "src/base/attrib.h"
#include "src/base/span.h"
#include "src/cli/opts.h"

struct json;
struct json_out;
struct secret;

/* A JSON file ("-": stdin) of at most 16 MiB. 0; -EINVAL after a sentence. */
WUNRES int body_read(const char *file, struct json **ret);

/* Calls fn for each binding of a text: one binding, a list of them, or
 * {"bindings": [...]}. Stops at the first result that is not 0, returns it. */
typedef int body_binding_fn(void *ctx, const struct json *binding);
WUNRES int body_each_binding(const struct json *root, body_binding_fn *fn,
			     void *ctx);

/* "labels": {...} from "KEY=VALUE" words. False after a sentence. */
WUNRES bool body_put_labels(struct json_out *out,
			    const struct opt_list *labels);

/* Can the value travel as JSON and stand in a header? False after a sentence
 * that does not repeat it. */
WUNRES bool body_value_is_sound(struct span name, const struct secret *value);
/* {"name": ..., "source": {"value": ...}}. Who owns the buffer wipes it. */
void body_put_credential(struct json_out *out, struct span name,
			 const struct secret *value);
