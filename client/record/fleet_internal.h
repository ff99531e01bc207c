/*
 * fleet_internal: the parts of a recording over several collectors, private to
 *
 *	fleet.c         from connecting to the end of the last collector
 *	fleet_parts.c   the parts, their files, and how they are freed
 *	fleet_result.c  the ZIP and the verdict
 */
#ifndef CLIENT_RECORD_FLEET_INTERNAL_H
#define CLIENT_RECORD_FLEET_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/command/collectors.h"
#include "client/library/collector_clock.h"
#include "client/record/notify.h"
#include "client/record/session.h"
#include "transport/base/compiler.h"

struct loop;
struct loop_timer;
struct record_config;
struct record_file;
struct record_live;
struct record_options;
struct trace_summary;

enum part_state {
	PART_ARMING,    /* its time-out runs */
	PART_ARMED,     /* waits for the others, or for its clock */
	PART_RECORDING, /* until its session is done */
	PART_MISSING,   /* did not get as far as recording */
	PART_ENDED,     /* result says how */
};

/* One collector. */
struct fleet_part {
	struct fleet *fleet;
	const struct collector *is;
	enum part_state state;
	bool clock_is_done;
	struct collector_clock_reading clock; /* 0 where it is not known */
	char name[COLLECTOR_NAME_MAX + 24]; /* in the ZIP: "c1.pftrace" */
	char *path; /* where it is written, in fleet->folder */
	struct record_notify notify;
	/* All owned. */
	struct record_config *config;
	struct record_file *file;
	struct record_live *live;
	struct trace_summary *summary;
	struct record_session *session;
	struct collector_clock *measuring;
	struct loop_timer *late;
	struct record_result result;
};

struct fleet {
	const struct record_options *options; /* borrowed */
	const struct record_config *config;   /* borrowed: the one for all */
	struct collectors collectors;
	struct fleet_part *parts; /* collectors.n */
	struct loop *loop;
	struct loop_timer *tick;
	struct record_live *live;
	char *folder; /* of the parts; NULL: none was made */
	uint64_t delay_ms;
	bool started;  /* all that are not missing */
	bool given_up; /* nothing is recorded */
	unsigned stops;
};

/* fleet_parts.c */

/* Makes all but sessions.  -1 with a sentence. */
int fleet_parts_make(struct fleet *f, char *err, size_t err_size) MUST_CHECK;
/* Removes the files, too, unless they are all that there is (keep). */
void fleet_parts_free(struct fleet *f, bool keep);

/* fleet_result.c */

/* Makes the ZIP and says how it went.  Returns the exit status. */
int fleet_result(struct fleet *f, bool *keep_parts);

#endif /* CLIENT_RECORD_FLEET_INTERNAL_H */
