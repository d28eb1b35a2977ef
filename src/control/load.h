/* SPDX-License-Identifier: Apache-2.0 */
/* load.h - reading everything control keeps in the vault
 *
 * Kinds are read one after the other into fresh objects; only when the last
 * one is there does anything of struct control change, in one step. A vault
 * that goes meanwhile ends the reading; its next channel begins another.
 */
#pragma once

struct control;
struct load;

/* Ends the one that runs. control_loaded() is called when it is done. */
void load_start(struct control *c);
struct load *load_free(struct load *l);
