/*
 * verdict: whether a trace can be trusted, in one word and one
 * sentence.  Pure.
 */
#ifndef CLIENT_INSPECT_REPORT_VERDICT_H
#define CLIENT_INSPECT_REPORT_VERDICT_H

struct inspection;

enum inspect_verdict_kind {
	INSPECT_WHOLE,
	INSPECT_LOSSY,      /* whole, and its packets tell of losses */
	INSPECT_WRONG_TIMES, /* whole, and times are of an unmeasured clock */
	INSPECT_UNFINISHED, /* whole packets, without the session's end */
	INSPECT_CUT_OFF,    /* ends within a packet */
	INSPECT_DAMAGED,
	INSPECT_NO_TRACE,   /* the file has no packet of a trace */
};

struct inspect_verdict {
	enum inspect_verdict_kind kind;
	char text[512]; /* "whole but lossy: ..." */
};

void inspect_verdict_make(struct inspect_verdict *out,
    const struct inspection *i);

/* "whole", "lossy", ...: for programs. */
const char *inspect_verdict_word(enum inspect_verdict_kind kind);

#endif /* CLIENT_INSPECT_REPORT_VERDICT_H */
