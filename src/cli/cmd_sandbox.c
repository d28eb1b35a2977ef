/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_sandbox.c - sallyport sandbox: who lives behind an interface */

#include "src/cli/body.h"
#include "src/cli/command.h"
#include "src/cli/routes.h"
#include "src/cli/simple.h"
#include "src/text/json.h"

enum { BODY_MAX = 256 * 1024 };

static const struct column columns[] = {
	{ "ID", "id" },
	{ "INTERFACE", "interface" },
	{ "ADDRESSES", "addresses" },
	{ "LABELS", "labels" },
	{ "LOCKED AT", "lockedAt" },
	{ "POLICY", "policy" },
	{ 0 },
};

/* What it uses of its limits: used=, limit= (0: none), refused=. */
static const struct column shown[] = {
	{ "ID", "id" },
	{ "INTERFACE", "interface" },
	{ "ADDRESSES", "addresses" },
	{ "LABELS", "labels" },
	{ "POLICY", "policy" },
	{ "CONNECTIONS", "usage.connections" },
	{ "CONNECTS/S", "usage.connectionsPerSecond" },
	{ "BYTES OUT/S", "usage.bytesPerSecondOut" },
	{ "BYTES IN/S", "usage.bytesPerSecondIn" },
	{ "DNS/S", "usage.dnsPerSecond" },
	{ "MINTS/S", "usage.mintsPerSecond" },
	{ 0 },
};

int cmd_sandbox_list(int argc, char **argv)
{
	const struct simple s = {
		.line = "sandbox list",
		.path = ROUTE_SANDBOXES,
		.member = "sandboxes",
		.columns = columns,
	};

	return simple_list(&s, argc, argv);
}

int cmd_sandbox_show(int argc, char **argv)
{
	const struct simple s = {
		.line = "sandbox show ID",
		.path = ROUTE_SANDBOXES,
		.columns = shown,
	};

	return simple_show(&s, argc, argv);
}

int cmd_sandbox_rm(int argc, char **argv)
{
	const struct simple s = {
		.line = "sandbox rm ID",
		.path = ROUTE_SANDBOXES,
	};

	return simple_rm(&s, argc, argv);
}

/* What `sandbox add` was given besides id and addresses; NULL: left out. */
struct wishes {
	const char *iface, *port, *mac;
	struct opt_list labels;
};

/* The body of a PUT. False after a sentence. */
static bool sandbox_put(struct json_out *out, const struct opt_words *words,
			const struct wishes *w)
{
	unsigned i;

	json_open_object(out, NULL);
	json_put_str(out, "id", words->items[0]);
	if (w->iface)
		json_put_str(out, "interface", w->iface);
	if (w->port)
		json_put_str(out, "port", w->port);
	if (w->mac)
		json_put_str(out, "mac", w->mac);
	json_open_array(out, "addresses");
	for (i = 1; i < words->count; i++)
		json_put_str(out, NULL, words->items[i]);
	json_close(out);
	if (!body_put_labels(out, &w->labels))
		return false;
	json_close(out);
	return !json_done(out);
}

int cmd_sandbox_add(int argc, char **argv)
{
	struct buf body CLEANUP(buf_fini) = BUF_INIT(BODY_MAX);
	struct opt_daemon where = { 0 };
	struct wishes w = { 0 };
	const struct opt opts[] = {
		{ "interface", OPT_TEXT, &w.iface, "NAME",
		  "the interface it is behind; default any", 'i' },
		{ "port", OPT_TEXT, &w.port, "NAME",
		  "its port, if that interface is a bridge", 'p' },
		{ "mac", OPT_TEXT, &w.mac, "ADDRESS",
		  "its hardware address", 'm' },
		{ "label", OPT_LIST, &w.labels, "KEY=VALUE",
		  "a label for policies to choose by", 'l' },
		OPTS_DAEMON(&where),
		{ 0 },
	};
	const struct opt_usage usage = {
		.line = "sandbox add ID ADDRESS... [options]",
		.min = 2,
		.max = OPT_ANY,
		.opts = opts,
	};
	struct opt_words words;
	struct api_path path;
	struct json_out out;
	struct api api;
	int r;

	r = opts_parse(&usage, argc, argv, &words);
	if (r)
		return opts_exit(r);
	json_start(&out, &body);
	if (!sandbox_put(&out, &words, &w))
		return CLI_USAGE;
	if (api_init(&api, &where))
		return CLI_FAILED;
	api_path_set(&path, ROUTE_SANDBOXES, span_str(words.items[0]));
	return api_do(&api, "PUT", path.text, buf_peek(&body));
}
