/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - feed every file of a corpus folder to a fuzz target, once */

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Also feeds every prefix of small inputs: truncation is the commonest bug. */
static void replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	static uint8_t data[1 << 20];
	uint8_t *exact;
	size_t len, cut;

	if (!f) {
		perror(path);
		exit(1);
	}
	len = fread(data, 1, sizeof(data), f);
	fclose(f);

	for (cut = len > 2048 ? len : 0; cut <= len; cut++) {
		/* an exact heap copy, so that ASan sees one byte too far */
		exact = malloc(cut ? cut : 1);
		if (!exact)
			abort();
		memcpy(exact, data, cut);
		(void)LLVMFuzzerTestOneInput(exact, cut);
		free(exact);
	}
}

int main(int argc, char **argv)
{
	char path[4096];
	struct dirent *entry;
	unsigned files = 0;
	DIR *dir;

	if (argc != 2 || !(dir = opendir(argv[1]))) {
		fprintf(stderr, "replay: no corpus folder %s\n",
			argc > 1 ? argv[1] : "(none given)");
		return 1;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
		replay_file(path);
		files++;
	}
	closedir(dir);
	printf("%u files replayed\n", files);
	return files ? 0 : 1;
}
