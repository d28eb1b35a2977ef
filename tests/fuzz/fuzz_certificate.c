/* fuzz: execd */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_certificate.c - a block that decodes is written and read as the same */

#include <stdlib.h>

#include "src/base/buf.h"
#include "src/execd/init/certificate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct span base64)
{
	struct buf der = BUF_INIT(4 * CERTIFICATE_MAX), pem = der, again = der;
	struct span text, block;
	uint32_t hash;

	if (!certificate_decode(base64, &der)) {
		if (certificate_put(&pem, buf_peek(&der)))
			abort();
		text = buf_peek(&pem);
		if (!certificate_next(&text, &block) ||
		    certificate_decode(block, &again) ||
		    !span_eq(buf_peek(&der), buf_peek(&again)))
			abort();
		(void)!certificate_subject_hash(buf_peek(&der), &hash);
	}
	buf_fini(&der);
	buf_fini(&pem);
	buf_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = span_of(data, size), base64;
	uint32_t hash;

	while (certificate_next(&text, &base64))
		check(base64);
	/* the walk through a subject, without base64 in its way */
	(void)!certificate_subject_hash(span_of(data, size), &hash);
	return 0;
}
