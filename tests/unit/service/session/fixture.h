/*
 * fixture: a collector without sockets for the tests of service/session: a
 * loop, a service, producers and consumers that write down what they are told.
 */
#ifndef TESTS_UNIT_SERVICE_SESSION_FIXTURE_H
#define TESTS_UNIT_SERVICE_SESSION_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protos/trace_config.pb-c.h"
#include "protos/trace_packet.pb-c.h"
#include "service/collector/service.h"
#include "service/ingest/writers.h"
#include "service/model/model.h"
#include "service/session/producer.h"
#include "service/session/session.h"
#include "service/settings/settings.h"
#include "transport/loop/loop.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_writer.h"

struct fixture {
	struct loop *loop;
	struct settings settings;
	struct service *service;
	char dir[64]; /* the trace directory, made for this test */
};

int fixture_setup(void **state);
int fixture_teardown(void **state);

/*
 * Turns the loop until cond(arg), for most of a minute, as the machine may have
 * much else to do; then fails.
 */
void fixture_wait(struct fixture *f, bool (*cond)(void *arg), void *arg);
/* NULL, or what passes time in those turns, where a test has its own time. */
extern void (*fixture_pass_time)(void);

#define FAKE_LOG_MAX 256

/* A producer that notes the commands it gets. */
struct fake_producer {
	struct fixture *f;
	struct producer *p;
	char log[FAKE_LOG_MAX][24]; /* "setup 1", "start 1", "flush 3" ... */
	size_t n_log;
	uint64_t last_instance; /* of SetupDataSource */
	uint64_t last_flush;
	uint16_t last_buffer;   /* target_buffer of the last config */
	uint8_t last_config[4096];
	size_t last_config_len;
	bool ack_flushes;       /* on the next turn */
	struct loop_call ack_call;
	bool quiet;             /* writes nothing down */
	uint64_t last_flush_ids[8];
	size_t last_flush_n;
	uint64_t last_flush_flags;
	bool resumed;
	struct shm *shm;        /* as set up */
};

/* Connects; emulated ones have no shared memory. */
void fake_producer_init(struct fake_producer *fp, struct fixture *f,
    const char *name, bool emulated);
/* The same with everything said; hello.machine NULL: the host. */
void fake_producer_hello(struct fake_producer *fp, struct fixture *f,
    struct producer_hello *hello);
void fake_producer_done(struct fake_producer *fp);
void fake_producer_register(struct fake_producer *fp, const char *data_source,
    bool notify_start, bool notify_stop);
bool fake_producer_saw(const struct fake_producer *fp, const char *line);
size_t fake_producer_count(const struct fake_producer *fp, const char *prefix);

/*
 * A chunk (header included) of one whole packet {timestamp: ts, for_testing
 * {str}} for CommitData.data.
 */
void fake_chunk(struct pb_writer *out, uint16_t writer, uint32_t chunk_id,
    uint64_t ts, const char *str);
/* A chunk (header included) of n fragments of len bytes in all. */
void fake_raw_chunk(struct pb_writer *out, uint16_t writer, uint32_t chunk_id,
    uint16_t n, uint8_t flags, const void *fragments, size_t len);
/* The body of such a packet; without a length before it. */
void fake_packet(struct pb_writer *out, uint64_t ts, const char *str);

/* One CommitData with one such chunk for the buffer. */
int fake_commit(struct fake_producer *fp, uint16_t buffer, uint16_t writer,
    uint32_t chunk_id, uint64_t ts, const char *str);

/* As a port does: the flush that the request answers is told on. */
enum commit_verdict fake_commit_data(struct producer *p,
    const uint8_t *request, size_t len);
/* CommitData built by the test; done with afterwards. */
int fake_commit_request(struct fake_producer *fp, struct pb_writer *request);
/* chunks_to_move: a chunk with data, or (chunk NULL) one in shared memory. */
void fake_move(struct pb_writer *request, uint32_t page, uint32_t index,
    uint32_t buffer, const struct pb_writer *chunk);
/* RegisterTraceWriter for the last buffer; writes packets into its shm. */
void fake_shm_packet(struct fake_producer *fp, uint16_t writer,
    uint32_t chunk_id, uint64_t ts, const char *str, bool complete,
    struct shm_slot *slot);

struct fake_consumer {
	struct session *s;
	bool disabled;
	char error[320];
	bool all_started;
	size_t started;
	size_t stopped;
	size_t clone_hits;
};
extern const struct consumer_ops fake_consumer_ops;

/*
 * EnableTracing with a config in protobuf text (tests fail when it does not
 * parse).  NULL when it was refused: the sentence is in c->error.
 */
struct session *fake_enable(struct fixture *f, struct fake_consumer *c,
    const char *config_text, int fd);
/* A remote machine that nobody vouches for. */
struct machine *fake_machine(struct fixture *f, uint32_t id, const char *name);
/* One of the last eight that were asked for; uid 0 is an admin. */
const struct principal *fake_user(uint32_t uid);
struct session *fake_enable_as(struct fixture *f, struct fake_consumer *c,
    const char *config_text, int fd, int32_t uid);
/* For fixture_wait(): the consumer was told of the end. */
bool fake_disabled(void *consumer);
/* DisableTracing, waited for, then FreeBuffers. */
void fake_end(struct fixture *f, struct fake_consumer *c);

/* Reads the session's buffers into a decoded Trace-like array. */
struct fake_trace {
	Perfetto__Protos__TracePacket **packets;
	size_t n;
};
void fake_read(struct session *s, struct fake_trace *t);
/* The packets of a file; fails when it does not end on a whole packet. */
void fake_read_file(const char *path, struct fake_trace *t);
void fake_trace_done(struct fake_trace *t);
/* The for_testing strings, in order, each followed by a space. */
void fake_trace_text(const struct fake_trace *t, char *out, size_t size);
/* Packets with for_testing and this str (NULL: any). */
size_t fake_trace_count(const struct fake_trace *t, const char *str);

#endif /* TESTS_UNIT_SERVICE_SESSION_FIXTURE_H */
