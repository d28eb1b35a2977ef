/* SPDX-License-Identifier: Apache-2.0 */
/* drop_record.h - audit records of packets that were dropped without us
 *
 * The kernel's rules refuse by themselves what nobody could allow; the queue
 * role tells of it (MSG_QUEUE_DROP). Such a packet belongs to whom it came in
 * from, whatever it says of itself.
 */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"
#include "src/role/msg.h"

struct drop_seen;
struct flow_rate;
struct worker;

struct drop_seen *drop_seen_new(void);
struct drop_seen *drop_seen_free(struct drop_seen *s);

/* One record, unless the sandbox or the node has had its share; the first of
 * each reason in some seconds is always written. False: the message makes no
 * sense. */
WUNRES bool drop_record(struct worker *w, struct flow_rate *rate,
			struct drop_seen *seen, const struct msg_drop *m);
