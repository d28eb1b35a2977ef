/* SPDX-License-Identifier: Apache-2.0 */
/* nft.h - give a script to the program nft */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

/* The program. */
const char *nft_path(void);

/* Runs the script as one kernel transaction. 0; -EINVAL: nft refused it (said
 * in the log unless quiet); -errno. Blocks while nft runs. */
WUNRES int nft_script(struct span script, bool quiet);

/* Would the kernel take the script? Nothing is changed. Blocks. */
bool nft_would(struct span script);
