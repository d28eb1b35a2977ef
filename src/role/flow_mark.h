/* SPDX-License-Identifier: Apache-2.0 */
/* flow_mark.h - the packet marks of what is neither TCP nor DNS
 *
 * Between our chains a packet carries one of these. The queue role answers
 * with REJECT, or with TAG and the number of the interface the packet came in
 * by; a chain puts the latter on the flow's entry in connection tracking,
 * which from then on says by itself that it was allowed, and for whom.
 */
#pragma once

#define FLOW_MARK_ASK	  0x51000000u
#define FLOW_MARK_REJECT  0x52000000u
#define FLOW_MARK_TAG	  0x53000000u
#define FLOW_MARK_MASK	  0xff000000u
#define FLOW_MARK_IFINDEX 0x00ffffffu
