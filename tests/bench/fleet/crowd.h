/*
 * crowd: very many producers over plain TCP, from one thread, each with one
 * data source that says when it has started and stopped and answers flushes.
 *
 * A member holds a descriptor and a few words, so that the generator does not
 * need more memory and time than what it measures.  Any failure ends the
 * process with a sentence.
 */
#ifndef TESTS_BENCH_FLEET_CROWD_H
#define TESTS_BENCH_FLEET_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CROWD_PACKET_BYTES 100u

struct crowd;

struct crowd_counts {
	size_t registered;
	size_t started;    /* instances, of all sessions so far */
	size_t stopped;
	size_t flushed;
	size_t refused;    /* connections that the daemon ended */
	uint64_t frames;   /* of data: handed to the kernel, wholly */
	uint64_t bytes;    /* of them */
	uint64_t replies;  /* to those that asked for one */
};

/*
 * n members for the daemon at "127.0.0.1:PORT", none of which has connected;
 * name: theirs, and that of their source.
 */
struct crowd *crowd_new(const char *address, const char *name, size_t n);
/* They say nothing of themselves and hear nothing: for a sink. */
void crowd_make_bare(struct crowd *c);
/* Hangs up. */
void crowd_free(struct crowd *c);

/*
 * Connects up to `upto` members in all, `at_once` of them under way at a time,
 * until each has registered its source or was refused.
 */
void crowd_connect(struct crowd *c, size_t upto, size_t at_once);
/* Closes member i. */
void crowd_leave(struct crowd *c, size_t i);

/*
 * Answers the daemon until done(arg) says so.  It is asked each turn, at least
 * every few milliseconds.
 */
void crowd_serve(struct crowd *c, bool (*done)(void *arg), void *arg);
const struct crowd_counts *crowd_counts(const struct crowd *c);

/* What the first `senders` members send, in turns. */
struct crowd_load {
	size_t senders;
	size_t packets;         /* of CROWD_PACKET_BYTES, a chunk and frame */
	uint64_t bytes_per_s;   /* of all together; 0: as fast as they go */
	uint64_t reply_every;   /* of so many frames one asks; 0: none */
	double seconds;
};
struct crowd_sent {
	uint64_t frames;
	uint64_t bytes;
	double seconds;         /* until the last byte was with the kernel */
	double late_ms;         /* how far behind the rate it was, at most */
	double p50_ms, p99_ms, max_ms; /* of a commit until its reply */
	size_t replies;
};
/*
 * Their instances have started.  Returns when all was sent and all replies are
 * there.
 */
void crowd_send(struct crowd *c, const struct crowd_load *load,
    struct crowd_sent *out);

#endif /* TESTS_BENCH_FLEET_CROWD_H */
