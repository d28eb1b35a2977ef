/* SPDX-License-Identifier: Apache-2.0 */
/* h1_chunked.c - the chunked coding, decoded strictly and without copying
 *
 * How it works: a small machine whose state says what the next byte must be.
 *
 *   SIZE --hex--> SIZE --';'--> EXTENSION
 *   SIZE, EXTENSION --CR--> SIZE_LF --LF--> DATA, or LINE after size 0
 *   DATA --all bytes--> DATA_CR --CR--> DATA_LF --LF--> SIZE
 *   LINE --token byte--> NAME --':'--> VALUE --CR--> VALUE_LF --LF--> LINE
 *   LINE --CR--> LAST_LF --LF--> END
 *
 * Any other byte refuses the body; a refusal is for ever. Data is handed out
 * as views. Everything that is not data is bounded: a size line by
 * H1_CHUNK_LINE_MAX, the trailer section by H1_TRAILER_MAX. A trailer field is
 * known by its name, of which the machine keeps as much as the longest name in
 * header.def; so the answer is the same however the input is cut.
 */

#include "src/wire/h1.h"

#include "src/base/buf.h"
#include "src/wire/bytes.h"

enum state {
	SIZE, /* zero: the start of a body */
	EXTENSION,
	SIZE_LF,
	DATA,
	DATA_CR,
	DATA_LF,
	LINE,
	NAME,
	VALUE,
	VALUE_LF,
	LAST_LF,
	END,
};

enum { SIZE_DIGITS_MAX = 16, TRAILER_NAME_MAX = 256 };

static enum h1_error on_size(struct h1_chunked *c, char byte)
{
	if (byte_is(byte, BYTE_HEX)) {
		if (c->line_bytes++ == SIZE_DIGITS_MAX)
			return H1_E_CHUNK_SIZE;
		c->left = c->left << 4 | byte_hex(byte);
		return H1_OK;
	}
	/* no digit, or a size that a signed 64-bit peer reads as negative */
	if (!c->line_bytes || c->left > INT64_MAX ||
	    (byte != '\r' && byte != ';'))
		return H1_E_CHUNK_SIZE;
	c->line_bytes++;
	c->state = byte == '\r' ? SIZE_LF : EXTENSION;
	return H1_OK;
}

static enum h1_error on_extension(struct h1_chunked *c, char byte)
{
	if (byte == '\r') {
		c->state = SIZE_LF;
		return H1_OK;
	}
	if (byte_is(byte, BYTE_CONTROL))
		return H1_E_CHUNK_SIZE;
	return ++c->line_bytes > H1_CHUNK_LINE_MAX ? H1_E_CHUNK_LINE : H1_OK;
}

static enum h1_error on_line(struct h1_chunked *c, char byte)
{
	if (byte == '\r') {
		c->state = LAST_LF;
		return H1_OK;
	}
	if (!byte_is(byte, BYTE_TOKEN))
		return H1_E_TRAILER;
	c->state = NAME;
	c->name[0] = byte;
	c->name_len = 1;
	return H1_OK;
}

static enum h1_error on_name(struct h1_chunked *c, char byte)
{
	struct span name = span_of(c->name, c->name_len);

	if (byte == ':') {
		c->state = VALUE;
		return header_flags_of(header_id_of(name)) ? H1_E_TRAILER_FIELD
							   : H1_OK;
	}
	if (!byte_is(byte, BYTE_TOKEN) || c->name_len == TRAILER_NAME_MAX)
		return H1_E_TRAILER;
	/* a name longer than the array is in no row, whatever its bytes */
	if (c->name_len < sizeof(c->name))
		c->name[c->name_len] = byte;
	c->name_len++;
	return H1_OK;
}

static enum h1_error on_value(struct h1_chunked *c, char byte)
{
	if (byte == '\r')
		c->state = VALUE_LF;
	else if (byte_is(byte, BYTE_CONTROL))
		return H1_E_TRAILER;
	return H1_OK;
}

/* The one byte that may stand here, or the error. */
static enum h1_error on_fixed(struct h1_chunked *c, char byte, char expected,
			      enum state next, enum h1_error error)
{
	if (byte != expected)
		return error;
	c->state = next;
	return H1_OK;
}

static enum h1_error on_size_lf(struct h1_chunked *c, char byte)
{
	c->line_bytes = 0;
	return on_fixed(c, byte, '\n', c->left ? DATA : LINE, H1_E_CHUNK_SIZE);
}

static enum h1_error on_last_lf(struct h1_chunked *c, char byte)
{
	c->done = byte == '\n';
	return on_fixed(c, byte, '\n', END, H1_E_TRAILER);
}

static enum h1_error on_byte(struct h1_chunked *c, char byte)
{
	switch ((enum state)c->state) {
	case SIZE:
		return on_size(c, byte);
	case EXTENSION:
		return on_extension(c, byte);
	case SIZE_LF:
		return on_size_lf(c, byte);
	case DATA_CR:
		return on_fixed(c, byte, '\r', DATA_LF, H1_E_CHUNK_END);
	case DATA_LF:
		return on_fixed(c, byte, '\n', SIZE, H1_E_CHUNK_END);
	case LINE:
		return on_line(c, byte);
	case NAME:
		return on_name(c, byte);
	case VALUE:
		return on_value(c, byte);
	case VALUE_LF:
		return on_fixed(c, byte, '\n', LINE, H1_E_TRAILER);
	case LAST_LF:
		return on_last_lf(c, byte);
	case DATA:
	case END:
		break;
	}
	return H1_E_CHUNK_SIZE; /* not reached: neither reads bytes singly */
}

/* Does a byte read in this state belong to a trailer field line? The final
 * CR LF does not. */
static bool is_trailer(enum state before, char byte)
{
	if (before == LINE)
		return byte != '\r';
	return before >= NAME && before <= VALUE_LF;
}

/* Counts a trailer byte, and keeps it when the caller wants it. */
static enum h1_error trailer_keep(struct h1_chunked *c, char byte,
				  struct buf *trailers)
{
	if (++c->line_bytes > H1_TRAILER_MAX)
		return H1_E_TRAILER_TOO_LARGE;
	if (trailers && buf_put(trailers, span_of(&byte, 1)))
		return H1_E_TRAILER_TOO_LARGE;
	return H1_OK;
}

/* One byte that is not data. */
static enum h1_error take_byte(struct h1_chunked *c, char byte,
			       struct buf *trailers)
{
	enum state before = (enum state)c->state;
	enum h1_error error = on_byte(c, byte);

	if (!error && is_trailer(before, byte))
		error = trailer_keep(c, byte, trailers);
	return error;
}

static struct span take_data(struct h1_chunked *c, struct span *in)
{
	struct span data = span_of(in->ptr, MIN(in->len, c->left));

	*in = span_from(*in, data.len);
	c->left -= data.len;
	if (!c->left)
		c->state = DATA_CR;
	return data;
}

enum h1_error h1_chunked_next(struct h1_chunked *c, struct span *in,
			      struct span *ret_data, struct buf *trailers)
{
	*ret_data = span_of(in->ptr, 0);
	while (!c->error && !c->done && in->len) {
		if (c->state == DATA) {
			*ret_data = take_data(c, in);
			return H1_OK;
		}
		c->error = take_byte(c, in->ptr[0], trailers);
		if (!c->error)
			*in = span_from(*in, 1);
	}
	return (enum h1_error)c->error;
}

size_t h1_chunk_head(uint64_t len, char *dst)
{
	static const char hex[] = "0123456789abcdef";
	unsigned digits = 1;
	size_t i;

	while (digits < 16 && len >> (4 * digits))
		digits++;
	for (i = 0; i < digits; i++)
		dst[i] = hex[len >> (4 * (digits - 1 - i)) & 15];
	dst[digits] = '\r';
	dst[digits + 1] = '\n';
	return digits + 2;
}
