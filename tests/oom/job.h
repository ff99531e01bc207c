/*
 * job: a whole job of producer, consumer and trace over the ports of a real
 * program, by clients that have memory.  Nothing in it waits for ever; what
 * does not come, and has no reason, fails the test.  A program that goes on
 * without memory for seconds, as a relay that tries again and again, gets some.
 */
#ifndef TESTS_OOM_JOB_H
#define TESTS_OOM_JOB_H

#include <stdbool.h>
#include <stdint.h>

struct fail_malloc;

#define JOB_PACKETS 40
#define JOB_CLONES  2

/* All with a flush, statistics and queries in between. */
enum job_kind {
	JOB_PLAIN,   /* into a file */
	JOB_STARTED, /* by a trigger; filtered, zstd, into a file */
	JOB_STOPPED, /* by a trigger; filtered, deflate, read */
	/* At a trigger, into a file and to be read; filtered, zstd. */
	JOB_CLONED,
};

struct job_plan {
	enum job_kind kind;
	const char *consumer, *producer; /* addresses */
	const char *certs;               /* of the producer */
	struct fail_malloc *memory;      /* of the program */
	/* Else what depends on memory is not waited for long. */
	bool has_memory;
};

struct job_result {
	bool in_short; /* something was refused or cut, and said so */
	char why[256];
	bool started;   /* the producer wrote */
	bool triggered; /* what the trigger is for happened */
	int packets;    /* that arrived */
	uint64_t lost;  /* as the session's statistics say */
	bool in_doubt;  /* those were refused */
	struct {
		bool made;
		int packets;
		uint64_t lost;
	} clones[JOB_CLONES];
};

void job_run(const struct job_plan *plan, struct job_result *result);

/* Whether it had all that its kind can have. */
bool job_is_complete(const struct job_plan *plan,
    const struct job_result *result);
/* Whether packets are missing from a trace that says that all are there. */
bool job_lost_silently(const struct job_plan *plan,
    const struct job_result *result);

#endif /* TESTS_OOM_JOB_H */
