/*
 * buffer_advice: what the statistics of one buffer mean, in the sentences of
 * somebody who knows: how much of the recording is gone, which part of it, and
 * what would have kept it.
 *
 * Pure.  Estimates take it that the data came at an even rate, and say "about".
 */
#ifndef CLIENT_TRACE_BUFFER_ADVICE_H
#define CLIENT_TRACE_BUFFER_ADVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct Perfetto__Protos__TraceStats__BufferStats;

/* Sentences about one buffer; bytes of the longest. */
#define BUFFER_ADVICE_SENTENCES 8u
#define BUFFER_ADVICE_TEXT      256u

struct buffer_facts {
	const struct Perfetto__Protos__TraceStats__BufferStats *stats;
	bool discard;         /* FILL_POLICY DISCARD; else a ring */
	/* Duration of the recording so far, or in all; 0: not known. */
	uint64_t duration_ms;
	/*
	 * The buffer was read while it was written: into a file, or by a reader
	 * of its own.  That makes room in a ring only.
	 */
	bool streamed;
	bool running;         /* data still comes */
	/* Bytes that nobody has read yet; only looked at when running. */
	uint64_t used;
};

enum buffer_verdict {
	BUFFER_EMPTY, /* nothing was written */
	BUFFER_WHOLE, /* all that arrived was kept */
	BUFFER_CUT,   /* part of what arrived is gone */
	BUFFER_HURT,  /* all that arrived was kept, but some never arrived */
};

struct buffer_sentence {
	bool loss; /* it is about data that is gone; else good to know */
	char text[BUFFER_ADVICE_TEXT];
};

struct buffer_advice {
	enum buffer_verdict verdict;
	/*
	 * Time at the beginning of duration_ms that is gone, about; 0: none, or
	 * not known.
	 */
	uint64_t gone_ms;
	/* Bytes that came and were not kept, about; and share of all, 0..1. */
	uint64_t gone_bytes;
	double gone_share;
	/* A size that would have kept them; 0: none is needed, or known. */
	uint64_t enough_bytes;
	/* Running, at this rate until it is full; 0: is, or not known. */
	uint64_t full_in_ms;
	/* At least one; losses come first. */
	size_t n;
	struct buffer_sentence sentences[BUFFER_ADVICE_SENTENCES];
};

/*
 * Each sentence reads after the name of the buffer ("buffer 0 wrapped 14
 * times: ..."), has no full stop and nothing that a peer wrote.
 */
void buffer_advice_make(struct buffer_advice *out,
    const struct buffer_facts *facts);

/* "cut": what programs are told in JSON; static, "" for none of the four. */
const char *buffer_verdict_word(enum buffer_verdict v);

#endif /* CLIENT_TRACE_BUFFER_ADVICE_H */
