/* SPDX-License-Identifier: Apache-2.0 */
/* chars.h - classes of ASCII characters, independent of locale
 *
 * For names and numbers in texts of people; bytes of HTTP have their own
 * (src/wire/bytes.h), looked up in a table.
 */
#pragma once

#include <stdbool.h>

static inline bool char_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool char_is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static inline bool char_is_letter(char c)
{
	return char_is_lower(c) || (c >= 'A' && c <= 'Z');
}

static inline bool char_is_alnum(char c)
{
	return char_is_digit(c) || char_is_letter(c);
}

/* 0..15 of a hexadecimal digit in either case, or -1. */
static inline int char_hex(char c)
{
	if (char_is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}
