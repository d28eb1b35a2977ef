/* SPDX-License-Identifier: Apache-2.0 */
/* record_memory.h - where OpenSSL's buffers of records come from
 *
 * A connection that rests holds none (SSL_MODE_RELEASE_BUFFERS), so each read
 * and each write of a record allocates 16 KiB and frees them again: four times
 * in an exchange. They are blocks of src/base/blocks.h, of a size that nothing
 * else has. All else OpenSSL gets from malloc.
 */
#pragma once

/* Before anything of OpenSSL is used. */
void record_memory_init(void);
