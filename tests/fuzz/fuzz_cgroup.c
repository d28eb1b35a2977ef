/* fuzz: execd */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_cgroup.c - whatever the kernel's files held, numbers stay in range */

#include <stdlib.h>

#include "src/execd/metrics/cgroup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = span_of(data, size), path;
	char folder[CGROUP_PATH_SIZE];
	struct cgroup_mount m;
	uint64_t a, b;
	double cores;

	(void)cgroup_parse_number(text, &a);
	(void)cgroup_parse_key(text, SPAN("inactive_file"), &a);
	if (cgroup_parse_cpu_max(text, &cores) && !(cores >= 0))
		abort();
	if (proc_parse_meminfo(text, &a, &b) && (b > a || !a))
		abort();
	(void)proc_parse_stat(text, &a, &b);
	if (cgroup_parse_mount(text, SPAN(""), &m) &&
	    (m.root[0] != '/' || m.point[0] != '/'))
		abort();
	if (cgroup_parse_self(text, SPAN(""), &path) &&
	    cgroup_parse_mount(text, SPAN("cpu"), &m) &&
	    cgroup_folder(&m, path, folder) &&
	    !span_starts(span_str(folder), span_str(m.point)))
		abort();
	return 0;
}
