/* SPDX-License-Identifier: Apache-2.0 */
/* test_ingress_route.c - every way to name a port of a sandbox */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/ingress/ingress_route.h"
#include "src/wire/h1.h"

#define ID "3f0c1a52-8a4e-4a43-9d0c-6b8c6b1a2f10"

struct row {
	const char *target, *host, *header; /* header: NULL or its line */
	enum ingress_error error;
	const char *id;
	unsigned port;
	const char *path, *plain, *prefix, *expires, *signature;
};

static const struct row rows[] = {
	/* header */
	{ "/x?y=1", "gw", "OpenSandbox-Ingress-To: " ID "-8080", INGRESS_OK, ID,
	  8080, "/x?y=1", "/x?y=1", "", "", "" },
	{ "/x", "gw", "opensandbox-ingress-to: " ID "-8080.any.where",
	  INGRESS_OK, ID, 8080, "/x", "/x", "", "", "" },
	{ "/x", "gw", "OPEN-SANDBOX-INGRESS: a-b-c-1", INGRESS_OK, "a-b-c", 1,
	  "/x", "/x", "", "", "" },
	{ "/x", "gw", "OpenSandbox-Ingress-To: " ID "-8080-vf7lds-eb8c2217a",
	  INGRESS_OK, ID, 8080, "/x", "/x", "", "vf7lds", "eb8c2217a" },
	{ "/sandboxes/o/proxy/1", "gw", "OpenSandbox-Ingress-To: nothing",
	  INGRESS_E_NO_ROUTE, NULL, 0, NULL, NULL, NULL, NULL, NULL },
	{ "/x", "gw", "OpenSandbox-Ingress-To: " ID "-65536", INGRESS_E_PORT,
	  NULL, 0, NULL, NULL, NULL, NULL, NULL },
	{ "/x", "gw", "OpenSandbox-Ingress-To: -1", INGRESS_E_NO_ROUTE, NULL, 0,
	  NULL, NULL, NULL, NULL, NULL },
	/* host */
	{ "/a%2Fb/../c", ID "-3000.box.example:8081", NULL, INGRESS_OK, ID,
	  3000, "/a%2Fb/../c", "/a%2Fb/../c", "", "", "" },
	{ "/", ID "-3000-vf7lds-eb8c2217a.box.example", NULL, INGRESS_OK, ID,
	  3000, "/", "/", "", "vf7lds", "eb8c2217a" },
	{ "/", ID "-0.box.example", NULL, INGRESS_E_PORT, NULL, 0, NULL, NULL,
	  NULL, NULL, NULL },
	{ "/sandboxes/s1/proxy/5/r", "node-8081.corp.example", NULL, INGRESS_OK,
	  "s1", 5, "/r", "/r", "/sandboxes/s1/proxy/5", "", "" },
	/* server */
	{ "/sandboxes/" ID "/proxy/44772", "gw:8081", NULL, INGRESS_OK, ID,
	  44772, "", "", "/sandboxes/" ID "/proxy/44772", "", "" },
	{ "/v1/sandboxes/s/proxy/80/", "gw", NULL, INGRESS_OK, "s", 80, "/",
	  "/", "/v1/sandboxes/s/proxy/80", "", "" },
	{ "/sandboxes/s/proxy/80?q=/1", "gw", NULL, INGRESS_OK, "s", 80,
	  "?q=/1", "?q=/1", "/sandboxes/s/proxy/80", "", "" },
	{ "/sandboxes/s/proxy/44772/proxy/9/z", "gw", NULL, INGRESS_OK, "s",
	  44772, "/proxy/9/z", "/proxy/9/z", "/sandboxes/s/proxy/44772", "",
	  "" },
	{ "/sandboxes/s/proxy/44772/proxy/18080/policy?x", "gw", NULL,
	  INGRESS_OK, "s", 18080, "/policy?x", "/policy?x",
	  "/sandboxes/s/proxy/44772/proxy/18080", "", "" },
	{ "/sandboxes/s/proxy/44772/proxy/44772/proxy/44772/ping", "gw", NULL,
	  INGRESS_OK, "s", 44772, "/ping", "/ping",
	  "/sandboxes/s/proxy/44772/proxy/44772/proxy/44772", "", "" },
	{ "/sandboxes/s/proxy/44772/proxy/44772/proxy/9/z", "gw", NULL,
	  INGRESS_OK, "s", 44772, "/proxy/9/z", "/proxy/9/z",
	  "/sandboxes/s/proxy/44772/proxy/44772", "", "" },
	{ "/sandboxes/s/proxy/44772/proxy/18080/proxy/44772", "gw", NULL,
	  INGRESS_OK, "s", 18080, "/proxy/44772", "/proxy/44772",
	  "/sandboxes/s/proxy/44772/proxy/18080", "", "" },
	{ "/sandboxes/s/proxy/44772/proxy/180800", "gw", NULL, INGRESS_OK, "s",
	  44772, "/proxy/180800", "/proxy/180800", "/sandboxes/s/proxy/44772",
	  "", "" },
	{ "/sandboxes/s/proxy/8080/proxy/18080", "gw", NULL, INGRESS_OK, "s",
	  8080, "/proxy/18080", "/proxy/18080", "/sandboxes/s/proxy/8080", "",
	  "" },
	{ "/proxy/18080/healthz", "gw", "OpenSandbox-Ingress-To: " ID "-44772",
	  INGRESS_OK, ID, 18080, "/healthz", "/healthz", "/proxy/18080", "",
	  "" },
	{ "/proxy/18080", "gw",
	  "OpenSandbox-Ingress-To: " ID "-44772-vf7lds-eb8c2217a", INGRESS_OK,
	  ID, 44772, "/proxy/18080", "/proxy/18080", "", "vf7lds",
	  "eb8c2217a" },
	{ "/s/44772/proxy/18080", "gw", NULL, INGRESS_OK, "s", 18080, "", "",
	  "/s/44772/proxy/18080", "", "" },
	{ "/sandboxes/s/proxy/99999/z", "gw", NULL, INGRESS_E_PORT, NULL, 0,
	  NULL, NULL, NULL, NULL, NULL },
	{ "/sandboxes/s/proxy/x", "gw", NULL, INGRESS_E_PORT, NULL, 0, NULL,
	  NULL, NULL, NULL, NULL },
	{ "/sandboxes/s/endpoints/1", "gw", NULL, INGRESS_E_NO_ROUTE, NULL, 0,
	  NULL, NULL, NULL, NULL, NULL },
	{ "/sandboxes/a%2e/proxy/1", "gw", NULL, INGRESS_E_NO_ROUTE, NULL, 0,
	  NULL, NULL, NULL, NULL, NULL },
	/* uri */
	{ "/" ID "/8080/a/b?c", "gw", NULL, INGRESS_OK, ID, 8080, "/a/b?c",
	  "/a/b?c", "/" ID "/8080", "", "" },
	{ "/s/8080", "gw", NULL, INGRESS_OK, "s", 8080, "", "", "/s/8080", "",
	  "" },
	{ "/s/8080/vf7lds/eb8c2217a/a", "gw", NULL, INGRESS_OK, "s", 8080, "/a",
	  "/vf7lds/eb8c2217a/a", "/s/8080/vf7lds/eb8c2217a", "vf7lds",
	  "eb8c2217a" },
	{ "/s/8080/vf7lds/eb8c2217", "gw", NULL, INGRESS_OK, "s", 8080,
	  "/vf7lds/eb8c2217", "/vf7lds/eb8c2217", "/s/8080", "", "" },
	{ "/s/70000/a", "gw", NULL, INGRESS_E_PORT, NULL, 0, NULL, NULL, NULL,
	  NULL, NULL },
	{ "/s/http/a", "gw", NULL, INGRESS_E_NO_ROUTE, NULL, 0, NULL, NULL,
	  NULL, NULL, NULL },
	{ "//8080/a", "gw", NULL, INGRESS_E_NO_ROUTE, NULL, 0, NULL, NULL, NULL,
	  NULL, NULL },
	{ "/", "gw", NULL, INGRESS_E_NO_ROUTE, NULL, 0, NULL, NULL, NULL, NULL,
	  NULL },
};

static void same(const char *expected, struct span found)
{
	assert_int_equal(found.len, strlen(expected));
	assert_memory_equal(found.ptr ? found.ptr : "", expected, found.len);
}

static void test_rows(void **state)
{
	static struct h1_request head;
	struct ingress_route route;
	const struct row *row;
	char text[1024];
	size_t i;
	int n;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		row = &rows[i];
		n = snprintf(text, sizeof(text),
			     "GET %s HTTP/1.1\r\nHost: %s\r\n%s%s\r\n",
			     row->target, row->host,
			     row->header ? row->header : "",
			     row->header ? "\r\n" : "");
		assert_int_equal(
			h1_parse_request(span_of(text, (size_t)n), &head),
			H1_OK);
		print_message("%s %s\n", row->target, row->host);
		assert_int_equal(ingress_route_parse(&head, &route),
				 row->error);
		if (row->error)
			continue;
		same(row->id, route.id);
		assert_int_equal(route.port, row->port);
		same(row->path, route.path);
		same(row->plain, route.plain_path);
		same(row->prefix, route.prefix);
		same(row->expires, route.expires);
		same(row->signature, route.signature);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
