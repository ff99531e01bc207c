/*
 * inspect_verdict: whether a trace can be trusted, in one word and one
 * sentence.  Pure.
 */
#ifndef CLIENT_INSPECT_REPORT_INSPECT_VERDICT_H
#define CLIENT_INSPECT_REPORT_INSPECT_VERDICT_H

struct inspection;

enum inspect_verdict_kind {
	INSPECT_WHOLE,
	INSPECT_LOSSY,      /* whole, and says itself that it misses data */
	INSPECT_WRONG_TIMES, /* whole, and says that times are another clock's */
	INSPECT_UNFINISHED, /* its packets are whole, its end is not there */
	INSPECT_CUT_OFF,    /* ends within a packet */
	INSPECT_DAMAGED,
	INSPECT_NO_TRACE,   /* not one packet of a trace is in it */
};

struct inspect_verdict {
	enum inspect_verdict_kind kind;
	char text[512]; /* "whole but lossy: ..." */
};

void inspect_verdict_make(struct inspect_verdict *out,
    const struct inspection *i);

/* "whole", "lossy", ...: for programs. */
const char *inspect_verdict_word(enum inspect_verdict_kind kind);

#endif /* CLIENT_INSPECT_REPORT_INSPECT_VERDICT_H */
