/* SPDX-License-Identifier: Apache-2.0 */
/* config.h - what the daemon is told: flags first, else the environment
 *
 * Flags take one dash or two, and their value as the next word or behind '='.
 * What is secret is moved into locked memory that no child inherits, and
 * overwritten where it came from: neither /proc/PID/cmdline nor
 * /proc/PID/environ tells it to the workload afterwards.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/log.h"
#include "src/execd/execd.h"

struct diag;

enum {
	EXECD_PORT = 44772,
	EXECD_POLL_MS = 100,
	EXECD_TOKEN_MAX = 4096,
};

#define EXECD_CA_FILE	"/opt/opensandbox/mitmproxy-ca-cert.pem"
#define EXECD_CA_BUNDLE "/opt/opensandbox/merged-ca-certificates.pem"
#define EXECD_FOLDER	"/opt/opensandbox"
#define EXECD_ENVS_FILE EXECD_FOLDER "/.env"

enum { CONFIG_E_HELP = 1, CONFIG_E_VERSION };

struct execd_settings {
	struct execd_config config;
	enum log_level log_level;
};

/* 0, with texts that live as long as argv and the environment do; one of
 * CONFIG_E_; -EINVAL with a sentence in d. Secrets
 * that were met are taken out of argv and the environment in each of these
 * cases. .config.files is not set. */
WUNRES int config_read(int argc, char **argv, struct execd_settings *ret,
		       struct diag *d);
/* Every flag, one a line, and the environment. */
void config_help(void);
