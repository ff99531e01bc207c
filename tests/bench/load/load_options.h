/*
 * load_options: what a run of tributary-load is to do.
 */
#ifndef TESTS_BENCH_LOAD_LOAD_OPTIONS_H
#define TESTS_BENCH_LOAD_LOAD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "transport/base/compiler.h"
#include "transport/connect/dial.h"

#define LOAD_PLACES_MAX 512u
#define LOAD_CROWDS_MAX 16u
#define LOAD_RATE_MAX UINT64_MAX /* as fast as the collector takes it */

enum load_churn {
	CHURN_CLEAN,
	CHURN_CUT,
	CHURN_VANISH,
	CHURN_MIXED, /* clean and cut in turn */
};

enum load_slow {
	SLOW_NOT,
	SLOW_READS,   /* leaves the collector's commands lying */
	SLOW_ANSWERS, /* acts on commands late */
	SLOW_NEVER,   /* never answers flushes and stops, and clears no state */
	SLOW_KINDS
};

enum load_hostile {
	HOSTILE_MUTE,          /* connects and says nothing */
	HOSTILE_HALF,          /* half a frame, and then nothing */
	HOSTILE_GARBAGE,       /* random bytes */
	HOSTILE_TOO_BIG,       /* frames over the limit */
	HOSTILE_FLOOD,         /* good calls, as fast as they go */
	HOSTILE_WRONG_IDS,     /* chunks for others' buffers, of no memory ... */
	HOSTILE_FORGED,        /* packets with the service's own fields */
	HOSTILE_REGISTRATIONS, /* sources and writers without end */
	HOSTILE_KINDS
};

struct load_crowd {
	unsigned kind; /* enum load_slow or load_hostile */
	uint32_t count;
};

enum load_relays { RELAYS_LINK, RELAYS_CLASSIC };

struct load_options {
	const char *connect[LOAD_PLACES_MAX];
	size_t n_connect;
	struct dial_options how;
	const char *certs_dir; /* a certificate for each device, or NULL */
	bool no_shm;
	uint32_t producers; /* of each relay, where there are any */
	uint32_t relays;    /* 0: producers connect by themselves */
	enum load_relays relay_protocol;
	const char *name;   /* of producers; a number follows */
	const char *source;
	uint32_t writers;
	uint64_t rate;       /* bytes per second of a producer */
	uint64_t total_rate; /* of all; 0: rate counts */
	size_t size_min, size_max;
	uint32_t big_per_mille; /* of packets: */
	size_t big_size;
	bool patches;
	bool state;          /* packets need those before them */
	bool repeat;         /* one chunk, again and again */
	uint32_t chunks;      /* of a commit */
	uint32_t reply_every; /* commits; 0: only where it has to be known */
	uint32_t burst_ms;
	uint64_t packets;     /* of a sequence; 0: any */
	bool stay;            /* when they are written */
	uint32_t shm_kb;
	uint32_t ramp;        /* connections per second; 0: as it goes */
	uint32_t idle_ms;     /* between the last connection and the load */
	uint64_t duration_ms; /* of the load; 0: until a signal */
	double churn;         /* per second */
	enum load_churn churn_how;
	struct load_crowd slow[LOAD_CROWDS_MAX];
	size_t n_slow;
	uint32_t slow_ms;
	struct load_crowd hostile[LOAD_CROWDS_MAX];
	size_t n_hostile;
	const char *ledger;
	uint32_t first_key;
	const char *consumer; /* address, for session and control */
	const char *session;  /* the trace's file; NULL: none is started */
	const char *config;   /* file; NULL: one of ours */
	bool stream;          /* the session is read, not written by it */
	uint32_t buffer_kb;
	uint32_t control_ms;  /* 0: no control client */
	pid_t pid;            /* 0: no collector is watched */
	const char *daemon;   /* program, or NULL */
	const char *daemon_config;
	uint64_t seed;
	bool quiet;
};

enum load_parsed { LOAD_PARSED, LOAD_PARSED_HELP, LOAD_PARSED_BAD };

/* err: a sentence for LOAD_PARSED_BAD.  Strings are borrowed from argv. */
enum load_parsed load_options_parse(struct load_options *o, int argc,
    char **argv, char *err, size_t err_size) MUST_CHECK;
void load_options_help(FILE *out);
const char *load_hostile_text(unsigned kind);

#endif /* TESTS_BENCH_LOAD_LOAD_OPTIONS_H */
