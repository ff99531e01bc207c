/*
 * events_session: the service that takes the events while they are measured,
 * tributaryd or Perfetto's traced, on sockets of its own, with a session of
 * track events; and this program connected to it.
 */
#ifndef TESTS_BENCH_TRACING_EVENTS_SESSION_H
#define TESTS_BENCH_TRACING_EVENTS_SESSION_H

#include <stdint.h>
#include <sys/types.h>

#include "tests/bench/ingest/process.h"
#include "tests/load/load_conn.h"

struct events_session {
	const char *name; /* of the service */
	struct process_daemon ours; /* pid 0: it is not tributaryd */
	pid_t traced;
	char folder[64]; /* of traced */
	char producers[PROCESS_ADDRESS_MAX];
	char consumers[PROCESS_ADDRESS_MAX];
	struct load_conn consumer;
};

/*
 * With a service that runs as `program`.  is_traced: it is the script that
 * tests/peers/fetch puts beside Perfetto's programs.  Returns when events are
 * written.
 */
void events_session_open(struct events_session *s, const char *program,
    bool is_traced);
/* Bytes of chunks that the service has stored so far, without its headers. */
uint64_t events_session_bytes(struct events_session *s);
/* Ends the session, the library and the service. */
void events_session_close(struct events_session *s);

#endif /* TESTS_BENCH_TRACING_EVENTS_SESSION_H */
