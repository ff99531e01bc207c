/*
 * text_scan: one token of lookahead, and error messages, shared by the two
 * halves of the parser (text_parse: structure, text_value: scalars).  Private
 * to these.
 */
#ifndef PROTOS_TEXT_SCAN_H
#define PROTOS_TEXT_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "protos/text_lex.h"

struct text_error;

struct text_scan {
	struct text_lex lex;
	struct text_token t; /* the current token */
	struct text_error *err; /* borrowed; NULL: errors are not described */
};

/* Starts on the first token. */
void text_scan_init(struct text_scan *s, const char *text, size_t len,
    struct text_error *err);

/* Steps to the next token; stays on an END or BAD one. */
void text_scan_next(struct text_scan *s);

bool text_scan_is(const struct text_scan *s, char symbol);

/* Steps over the symbol if it is the current token; returns whether it was. */
bool text_scan_accept(struct text_scan *s, char symbol);

/* Fills in the error: at t, with a sentence.  Always returns false. */
bool text_scan_fail(struct text_scan *s, const struct text_token *t,
    const char *fmt, ...) __attribute__((__format__(__printf__, 3, 4)));

/*
 * An error at a token, maybe a BAD one, where something else is wanted.  The
 * sentence says what; "not 'token'", or what is wrong with it, is added.
 */
bool text_scan_unexpected(struct text_scan *s, const struct text_token *t,
    const char *fmt, ...) __attribute__((__format__(__printf__, 3, 4)));

/* A type's name without the package; points into name. */
const char *text_scan_type_name(const char *name, const char *package);

#endif /* PROTOS_TEXT_SCAN_H */
