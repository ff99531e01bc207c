/*
 * text_lex: the words of protobuf text format, with their lines and columns.
 *
 * Cuts bytes from anywhere into tokens; knows the syntax of words, numbers,
 * strings and comments, and nothing of messages.  Pure: no allocation, and
 * tokens point into the input.
 */
#ifndef PROTOS_TEXT_LEX_H
#define PROTOS_TEXT_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum text_token_type {
	TEXT_TOKEN_END,    /* the end of the input; length 0 */
	TEXT_TOKEN_WORD,   /* letters, digits and _, not a digit first */
	TEXT_TOKEN_INT,    /* decimal, 0x hex or 0 octal; no sign */
	TEXT_TOKEN_FLOAT,  /* has a point, an exponent or an f at its end */
	TEXT_TOKEN_STRING, /* with its quotes; its escapes are valid */
	TEXT_TOKEN_SYMBOL, /* one character of :{}<>[],;-./ */
	TEXT_TOKEN_BAD     /* none of these: problem says why */
};

struct text_token {
	enum text_token_type type;
	const char *start;   /* borrowed from the input */
	size_t len;          /* bytes */
	unsigned line;       /* 1 is the first */
	unsigned column;     /* in characters (a tab is one), 1 is the first */
	const char *problem; /* BAD: static, as "is not a number"; else NULL */
};

struct text_lex {
	const char *p;
	const char *end;
	unsigned line;
	unsigned column;
};

/* text stays the caller's.  A byte order mark at its start is skipped. */
void text_lex_init(struct text_lex *l, const char *text, size_t len);

/* The next token; after TEXT_TOKEN_END or a BAD one, ask no more. */
struct text_token text_lex_next(struct text_lex *l);

/*
 * Decodes the STRING token t to out, which has room for t->len bytes, and
 * returns the number of bytes written (always fewer than t->len).
 */
size_t text_lex_string(const struct text_token *t, uint8_t *out);

/*
 * Value of the INT token t.  False when it does not fit 64 bits.
 */
bool text_lex_int(const struct text_token *t, uint64_t *out)
    __attribute__((__warn_unused_result__));

#endif /* PROTOS_TEXT_LEX_H */
