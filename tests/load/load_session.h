/*
 * load_session: a consumer and its one tracing session, for load.
 */
#ifndef TESTS_LOAD_LOAD_SESSION_H
#define TESTS_LOAD_LOAD_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/load/load_conn.h"

struct load_session {
	struct load_conn conn;
	uint64_t enable; /* request id of EnableTracing */
	bool ended;
	char error[256]; /* of EnableTracingResponse */
};

/* What TraceStats says of the session; sums over its buffers. */
struct load_stats {
	uint64_t chunks_written;
	uint64_t chunks_lost; /* discarded anywhere, or violating the ABI */
	uint64_t chunks_overwritten;
	uint64_t bytes_written;
};

/*
 * Starts a session of one buffer for one data source of any machine.  file_fd
 * -1: no write_into_file.
 */
void load_session_open(struct load_session *s, const char *address,
    const char *source, uint32_t buffer_kb, int file_fd);
void load_session_stats(struct load_session *s, struct load_stats *out);
/* Asks for the end and waits for it; the producers must be served meanwhile. */
void load_session_request_stop(struct load_session *s);
void load_session_wait_ended(struct load_session *s);
void load_session_close(struct load_session *s);

#endif /* TESTS_LOAD_LOAD_SESSION_H */
