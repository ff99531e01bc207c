/*
 * buffer_advice: explains the statistics of one buffer in sentences: how much
 * of the recording is gone, which part of it, and which size would have kept
 * it.
 *
 * Pure.  Estimates assume that data came at an even rate, and say "about".
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
	 * The buffer was read while it was written: into a file, or by its
	 * consumer.  Reading makes room in a ring only, not under DISCARD.
	 */
	bool streamed;
	bool running;         /* the session still records */
	/* Unread bytes in the buffer; only looked at when running. */
	uint64_t used;
};

enum buffer_verdict {
	BUFFER_EMPTY, /* nothing was written */
	BUFFER_WHOLE, /* all that arrived was kept */
	BUFFER_CUT,   /* part of what arrived is gone */
	BUFFER_HURT,  /* all that arrived was kept, but some never arrived */
};

struct buffer_sentence {
	bool loss; /* tells of data that is gone; else of the buffer's use */
	char text[BUFFER_ADVICE_TEXT];
};

struct buffer_advice {
	enum buffer_verdict verdict;
	/*
	 * Time at the beginning of duration_ms that is gone, about; 0: none, or
	 * not known.
	 */
	uint64_t gone_ms;
	/*
	 * Bytes that arrived and were not kept, about; and their share of all
	 * that arrived, 0..1.
	 */
	uint64_t gone_bytes;
	double gone_share;
	/* Buffer size that would have kept them; 0: none needed, or unknown. */
	uint64_t enough_bytes;
	/*
	 * While running: time until the buffer is full at the mean rate so far;
	 * 0: full already, never, or unknown.
	 */
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

/* The verdict in JSON: "cut"; static, "" for none of the four. */
const char *buffer_verdict_word(enum buffer_verdict v);

#endif /* CLIENT_TRACE_BUFFER_ADVICE_H */
