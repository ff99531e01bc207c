#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "protos/control.pb-c.h"
#include "service/port/control_internal.h"
#include "tests/unit/service/port/port_fixture.h"
#include "transport/wire/frame.h"

enum { M_QUERY = 2, M_START = 3, M_FLUSH = 4, M_STOP = 5 };

#define RING "buffers { size_kb: 64 } "
#define SOURCE "data_sources { config { name: \"a\" } } "
#define DEFERRED "deferred_start: true "
/* A producer of this fixture answers no flush. */
#define HURRY "flush_timeout_ms: 1 "

typedef Tributary__QuerySessionsReply sessions_reply;
typedef Tributary__SessionState session_state;
typedef Tributary__SessionCommandReply command_reply;

#define STATE(name) TRIBUTARY__SESSION_STATE__STATE__##name

static const struct peer ann = {
	.kind = ADDR_UNIX, .auth = PEER_UNIX, .uid = 31001, .text = "ann"
};
static const struct peer bob = {
	.kind = ADDR_UNIX, .auth = PEER_UNIX, .uid = 31002, .text = "bob"
};

static sessions_reply *
ask_with(struct client *c, struct pb_writer *args, size_t *parts)
{
	uint64_t request = client_send(c, M_QUERY, args, -1);
	const struct reply *r;
	sessions_reply *all;
	struct pb_writer w;
	size_t n = 0;

	pb_writer_init(&w);
	do {
		r = client_wait(c, request, n++);
		assert_true(r->ok);
		assert_true(r->len < FRAME_MAX_BYTES - 1024);
		pb_put_raw(&w, r->msg, r->len);
	} while (r->more);
	all = tributary__query_sessions_reply__unpack(NULL, w.len, w.data);
	assert_non_null(all);
	pb_writer_done(&w);
	if (parts != NULL)
		*parts = n;
	return all;
}

static sessions_reply *
ask(struct client *c)
{
	return ask_with(c, NULL, NULL);
}

static void
done(sessions_reply *r)
{
	tributary__query_sessions_reply__free_unpacked(r, NULL);
}

/* How many sessions it shows to this one. */
static size_t
shown(struct client *c)
{
	sessions_reply *r = ask(c);
	size_t n = r->n_sessions;

	done(r);
	return n;
}

static uint64_t
command(struct client *c, uint32_t method, uint64_t id, bool discard,
    uint32_t timeout_ms)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, 1, id);
	if (timeout_ms != 0)
		pb_put_uint(&w, 3, timeout_ms);
	if (discard)
		pb_put_uint(&w, 4, 1);
	return client_send(c, method, &w, -1);
}

/* The error of the answer, "" where there is none. */
static const char *
answer(struct client *c, uint64_t request)
{
	static char text[1024];
	const struct reply *r = client_wait(c, request, 0);
	command_reply *m;

	assert_true(r->ok);
	m = tributary__session_command_reply__unpack(NULL, r->len, r->msg);
	assert_non_null(m);
	snprintf(text, sizeof(text), "%s", m->error != NULL ? m->error : "");
	tributary__session_command_reply__free_unpacked(m, NULL);
	return text;
}

#define assert_done(c, request) assert_string_equal(answer(c, request), "")
#define assert_refused(c, request, words)                                     \
	do {                                                                  \
		const char *said = answer(c, request);                        \
		if (strstr(said, words) == NULL)                              \
			fail_msg("\"%s\" is not in \"%s\"", words, said);     \
	} while (0)

/* Enables, and waits until the session is there; returns its id. */
static uint64_t
enable(struct client *c, const char *config, uint64_t *call)
{
	uint64_t before = c->ports->service->last_session_id;

	*call = client_enable(c, config, -1);
	while (c->ports->service->last_session_id == before)
		client_turn(c);
	return c->ports->service->last_session_id;
}

static void
a_session_is_told_as_it_is(void **state)
{
	struct ports *p = *state;
	struct client c, producer, consumer;
	const session_state *s;
	sessions_reply *r;
	uint64_t id, call;

	client_open(&producer, p, PRODUCER);
	client_initialize(&producer, "probes");
	client_register(&producer, "a");
	client_open(&consumer, p, CONSUMER);
	id = enable(&consumer, "buffers { size_kb: 64 name: \"big\" } "
	    "buffers { size_kb: 8 fill_policy: DISCARD } " SOURCE
	    "data_sources { config { name: \"a\" target_buffer: 1 } } "
	    "unique_session_name: \"mine\" duration_ms: 60000 " HURRY, &call);
	client_open(&c, p, CONTROL);
	r = ask(&c);
	assert_int_equal(r->n_sessions, 1);
	assert_int_equal(r->all_sessions, 1);
	assert_int_equal(r->buffer_bytes, 72 * 1024);
	assert_int_equal(r->max_sessions, p->settings.limits.max_sessions);
	assert_true(r->max_buffer_bytes > 1 << 20);
	s = r->sessions[0];
	assert_int_equal(s->id, id);
	assert_string_equal(s->unique_session_name, "mine");
	assert_int_equal(s->state, STATE(STARTED));
	assert_string_equal(s->owner, "uid 0");
	assert_true(s->has_consumer);
	assert_null(s->detach_key);
	assert_true(s->created_ns > 1600000000ull * 1000000000);
	assert_true(s->started_ns >= s->created_ns);
	assert_true(s->started_ns <= r->now_ns);
	assert_int_equal(s->planned_ms, 60000);
	assert_in_range(s->remaining_ms, 1, 60000);
	assert_int_equal(s->n_buffers, 2);
	assert_string_equal(s->buffers[0]->name, "big");
	assert_int_equal(s->buffers[0]->size, 64 * 1024);
	assert_false(s->buffers[0]->discard);
	assert_true(s->buffers[1]->discard);
	assert_null(s->file);
	assert_int_equal(s->n_machines, 1);
	assert_string_equal(s->machines[0], "host");
	assert_int_equal(s->all_machines, 1);
	assert_int_equal(s->producers, 1);
	assert_int_equal(s->data_sources, 2);
	assert_null(s->stats);
	done(r);
	/* After its end it is known who took part. */
	assert_done(&c, command(&c, M_STOP, id, false, 0));
	r = ask_with(&c, args_uint(3, 1), NULL);
	s = r->sessions[0];
	assert_int_equal(s->state, STATE(DISABLED));
	assert_int_equal(s->producers, 1);
	assert_int_equal(s->data_sources, 2);
	assert_int_equal(s->n_machines, 1);
	assert_false(s->has_remaining_ms);
	assert_int_equal(s->flushes_failed, 1);
	assert_non_null(s->stats);
	assert_int_equal(s->stats->n_buffer_stats, 2);
	done(r);
	client_close(&consumer);
	client_close(&producer);
	client_close(&c);
}

static void
one_is_found_by_id_or_by_name(void **state)
{
	struct ports *p = *state;
	struct client c, first, second;
	uint64_t one, call;
	sessions_reply *r;

	client_open(&first, p, CONSUMER);
	client_open(&second, p, CONSUMER);
	client_open(&c, p, CONTROL);
	one = enable(&first, RING, &call);
	(void)enable(&second, RING "unique_session_name: \"two\"", &call);
	r = ask_with(&c, args_uint(1, one), NULL);
	assert_int_equal(r->n_sessions, 1);
	assert_int_equal(r->sessions[0]->id, one);
	done(r);
	r = ask_with(&c, args_string(2, "two"), NULL);
	assert_int_equal(r->n_sessions, 1);
	assert_int_equal(r->sessions[0]->id, one + 1);
	done(r);
	r = ask_with(&c, args_string(2, "tw"), NULL);
	assert_int_equal(r->n_sessions, 0);
	assert_int_equal(r->all_sessions, 2);
	done(r);
	assert_false(client_call(&c, M_QUERY, args_string(1, "x"))->ok);
	client_close(&first);
	client_close(&second);
	client_close(&c);
}

static void
what_is_anothers_does_not_exist(void **state)
{
	struct ports *p = *state;
	struct client anns, bobs, root, consumer;
	uint64_t id, call;
	char absent[256];

	client_open_as(&consumer, p, CONSUMER, &ann);
	client_open_as(&anns, p, CONTROL, &ann);
	client_open_as(&bobs, p, CONTROL, &bob);
	client_open(&root, p, CONTROL);
	/* That everybody may clone it gives nobody a right to it. */
	id = enable(&consumer, RING "bugreport_score: 1", &call);
	assert_int_equal(shown(&anns), 1);
	assert_int_equal(shown(&root), 1);
	assert_int_equal(shown(&bobs), 0);
	snprintf(absent, sizeof(absent), "There is no session %llu, or it has "
	    "another owner", (unsigned long long)id);
	assert_string_equal(answer(&bobs, command(&bobs, M_STOP, id, true, 0)),
	    absent);
	assert_string_equal(answer(&bobs, command(&bobs, M_FLUSH, id, false,
	    0)), absent);
	assert_string_equal(answer(&bobs, command(&bobs, M_START, id, false,
	    0)), absent);
	assert_refused(&bobs, command(&bobs, M_STOP, id + 1, true, 0),
	    "There is no session");
	assert_int_equal(client_count(&consumer, call), 0);
	assert_done(&root, command(&root, M_STOP, id, false, 0));
	client_close(&consumer);
	client_close(&anns);
	client_close(&bobs);
	client_close(&root);
}

static void
a_stop_reaches_the_consumer_as_an_end_that_was_planned(void **state)
{
	struct ports *p = *state;
	struct client c, consumer;
	uint64_t id, call;
	struct pb_field f;

	client_open(&consumer, p, CONSUMER);
	client_open(&c, p, CONTROL);
	id = enable(&consumer, RING, &call);
	assert_done(&c, command(&c, M_STOP, id, false, 0));
	assert_true(client_wait(&consumer, call, 0)->ok);
	assert_false(reply_field(client_wait(&consumer, call, 0), 3, &f));
	/* It reads its trace, and whoever stops it again is right, too. */
	assert_true(client_call(&consumer, C_READ, NULL)->ok);
	assert_done(&c, command(&c, M_STOP, id, false, 0));
	assert_int_equal(shown(&c), 1);
	client_close(&consumer);
	client_close(&c);
}

static void
a_stop_is_answered_when_the_file_is_complete(void **state)
{
	struct ports *p = *state;
	struct client c, consumer;
	uint64_t id, call;
	char path[128], seen[PATH_MAX];
	sessions_reply *r;
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/trace", p->dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	client_open(&consumer, p, CONSUMER);
	client_open(&c, p, CONTROL);
	call = client_enable(&consumer, RING "write_into_file: true "
	    "max_file_size_bytes: 1000000", fd);
	close(fd);
	while (p->service->n_sessions == 0)
		client_turn(&consumer);
	id = p->service->last_session_id;
	r = ask(&c);
	/* The file by the path that its descriptor shows. */
	assert_non_null(realpath(path, seen));
	assert_string_equal(r->sessions[0]->file, seen);
	assert_int_equal(r->sessions[0]->max_file_bytes, 1000000);
	done(r);
	assert_done(&c, command(&c, M_STOP, id, false, 0));
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size > 0);
	r = ask(&c);
	assert_int_equal(r->sessions[0]->state, STATE(DISABLED));
	assert_int_equal(r->sessions[0]->file_bytes, st.st_size);
	assert_string_equal(r->sessions[0]->file, seen);
	done(r);
	assert_true(client_wait(&consumer, call, 0)->ok);
	client_close(&consumer);
	client_close(&c);
}

static void
an_output_path_is_told_whole(void **state)
{
	struct ports *p = *state;
	struct client c, consumer;
	uint64_t call;
	sessions_reply *r;

	p->settings.trace_dir = strdup(p->dir);
	client_open(&consumer, p, CONSUMER);
	client_open(&c, p, CONTROL);
	(void)enable(&consumer, RING "write_into_file: true "
	    "output_path: \"sub.pftrace\" compression_type: "
	    "COMPRESSION_TYPE_DEFLATE", &call);
	r = ask(&c);
	assert_memory_equal(r->sessions[0]->file, p->dir, strlen(p->dir));
	assert_string_equal(r->sessions[0]->file + strlen(p->dir),
	    "/sub.pftrace");
	assert_string_equal(r->sessions[0]->compression, "deflate");
	done(r);
	client_close(&consumer);
	client_close(&c);
}

static void
a_discarded_session_is_gone_and_its_consumer_goes_on(void **state)
{
	struct ports *p = *state;
	struct client c, consumer;
	uint64_t id, call;
	const struct reply *r;

	client_open(&consumer, p, CONSUMER);
	client_open(&c, p, CONTROL);
	id = enable(&consumer, RING, &call);
	assert_done(&c, command(&c, M_STOP, id, true, 0));
	assert_int_equal(p->service->n_sessions, 0);
	assert_true(client_wait(&consumer, call, 0)->ok);
	/* Clients wait for ever for a read that is refused. */
	r = client_call(&consumer, C_READ, NULL);
	assert_true(r->ok && !r->more);
	assert_int_equal(r->len, 0);
	assert_true(client_call(&consumer, C_FREE, NULL)->ok);
	assert_false(client_call(&consumer, C_READ, NULL)->ok);
	(void)enable(&consumer, RING, &call);
	assert_true(client_call(&consumer, C_READ, NULL)->ok);
	client_close(&consumer);
	client_close(&c);
}

static void
a_detached_session_is_stopped_and_discarded(void **state)
{
	struct ports *p = *state;
	struct client c, consumer;
	sessions_reply *r;
	uint64_t id, call;

	client_open(&consumer, p, CONSUMER);
	client_open(&c, p, CONTROL);
	id = enable(&consumer, RING, &call);
	assert_true(client_call(&consumer, C_DETACH,
	    args_string(1, "key"))->ok);
	client_close(&consumer);
	r = ask(&c);
	assert_false(r->sessions[0]->has_consumer);
	assert_string_equal(r->sessions[0]->detach_key, "key");
	done(r);
	assert_done(&c, command(&c, M_STOP, id, false, 0));
	assert_int_equal(shown(&c), 1);
	assert_done(&c, command(&c, M_STOP, id, true, 0));
	assert_int_equal(shown(&c), 0);
	client_close(&c);
}

static void
a_snapshot_is_known_as_one_and_discarded(void **state)
{
	struct ports *p = *state;
	struct client c, consumer, other, producer;
	sessions_reply *r;
	uint64_t id, call;

	client_open(&producer, p, PRODUCER);
	client_initialize(&producer, "probes");
	client_register(&producer, "a");
	client_open(&consumer, p, CONSUMER);
	client_open(&other, p, CONSUMER);
	client_open(&c, p, CONTROL);
	id = enable(&consumer, RING SOURCE HURRY, &call);
	assert_true(client_call(&other, C_CLONE, args_uint(1, id))->ok);
	r = ask_with(&c, args_uint(1, id + 1), NULL);
	assert_int_equal(r->n_sessions, 1);
	assert_int_equal(r->sessions[0]->state, STATE(CLONED));
	assert_int_equal(r->sessions[0]->cloned_from, id);
	assert_int_equal(r->sessions[0]->producers, 1);
	assert_true(r->sessions[0]->ended_ns > 0);
	done(r);
	assert_refused(&c, command(&c, M_STOP, id + 1, false, 0),
	    "snapshot of another");
	assert_refused(&c, command(&c, M_FLUSH, id + 1, false, 0),
	    "snapshot of another");
	assert_done(&c, command(&c, M_STOP, id + 1, true, 0));
	assert_int_equal(shown(&c), 1);
	assert_int_equal(client_call(&other, C_READ, NULL)->len, 0);
	client_close(&producer);
	client_close(&consumer);
	client_close(&other);
	client_close(&c);
}

static void
a_deferred_session_is_started(void **state)
{
	struct ports *p = *state;
	struct client c, consumer;
	sessions_reply *r;
	uint64_t id, call;

	client_open(&consumer, p, CONSUMER);
	client_open(&c, p, CONTROL);
	id = enable(&consumer, RING DEFERRED, &call);
	r = ask(&c);
	assert_int_equal(r->sessions[0]->state, STATE(CONFIGURED));
	assert_false(r->sessions[0]->has_started_ns);
	done(r);
	assert_refused(&c, command(&c, M_FLUSH, id, false, 0),
	    "has not started yet");
	assert_done(&c, command(&c, M_START, id, false, 0));
	assert_refused(&c, command(&c, M_START, id, false, 0), "runs already");
	assert_done(&c, command(&c, M_STOP, id, false, 0));
	assert_refused(&c, command(&c, M_START, id, false, 0),
	    "has stopped already");
	assert_refused(&c, command(&c, M_FLUSH, id, false, 0),
	    "has stopped already");
	client_close(&consumer);
	client_close(&c);
}

static void
one_that_waits_for_a_trigger_says_for_which(void **state)
{
	struct ports *p = *state;
	struct client c, consumer;
	sessions_reply *r;
	uint64_t id, call;

	client_open(&consumer, p, CONSUMER);
	client_open(&c, p, CONTROL);
	id = enable(&consumer, RING "trigger_config { trigger_mode: "
	    "START_TRACING trigger_timeout_ms: 50000 triggers { name: \"t\" "
	    "stop_delay_ms: 1 } }", &call);
	r = ask(&c);
	assert_int_equal(r->sessions[0]->state, STATE(CONFIGURED));
	assert_int_equal(r->sessions[0]->n_triggers, 1);
	assert_string_equal(r->sessions[0]->triggers[0], "t");
	assert_int_equal(r->sessions[0]->trigger_mode, 1);
	assert_int_equal(r->sessions[0]->triggers_hit, 0);
	assert_int_equal(r->sessions[0]->planned_ms, 50000);
	assert_in_range(r->sessions[0]->remaining_ms, 1, 50000);
	done(r);
	/* Whoever cannot wait starts it. */
	assert_done(&c, command(&c, M_START, id, false, 0));
	r = ask(&c);
	assert_int_equal(r->sessions[0]->state, STATE(STARTED));
	done(r);
	client_close(&consumer);
	client_close(&c);
}

/* On a clock that counts sleep, too. */
static void
what_remains_is_known_on_either_clock(void **state)
{
	struct ports *p = *state;
	struct client c, consumer;
	sessions_reply *r;
	uint64_t call;

	client_open(&consumer, p, CONSUMER);
	client_open(&c, p, CONTROL);
	(void)enable(&consumer, RING "duration_ms: 50000 "
	    "prefer_suspend_clock_for_duration: true", &call);
	r = ask(&c);
	assert_in_range(r->sessions[0]->remaining_ms, 40000, 50000);
	done(r);
	client_close(&consumer);
	client_close(&c);
}

static void
a_flush_says_whether_all_have_answered(void **state)
{
	struct ports *p = *state;
	struct client c, consumer, producer;
	uint64_t id, call;

	client_open(&consumer, p, CONSUMER);
	client_open(&c, p, CONTROL);
	id = enable(&consumer, RING SOURCE HURRY, &call);
	assert_done(&c, command(&c, M_FLUSH, id, false, 0));
	client_open(&producer, p, PRODUCER);
	client_initialize(&producer, "deaf");
	client_register(&producer, "a");
	assert_refused(&c, command(&c, M_FLUSH, id, false, 20),
	    "did not answer within 20 ms");
	client_close(&producer);
	client_close(&consumer);
	client_close(&c);
}

/* A session whose end waits for a producer that never answers. */
static uint64_t
slow_session(struct client *consumer, struct client *producer)
{
	uint64_t call;

	client_initialize(producer, "deaf");
	client_register(producer, "a");
	return enable(consumer, RING SOURCE "flush_timeout_ms: 60000", &call);
}

static void
whoever_waits_may_go(void **state)
{
	struct ports *p = *state;
	struct client c, consumer, producer;
	uint64_t id;

	client_open(&producer, p, PRODUCER);
	client_open(&consumer, p, CONSUMER);
	client_open(&c, p, CONTROL);
	id = slow_session(&consumer, &producer);
	(void)command(&c, M_FLUSH, id, false, 0);
	(void)command(&c, M_STOP, id, true, 0);
	while (session_find(p->service, id)->state !=
		    SESSION_LAST_FLUSH)
		client_turn(&c);
	client_close(&c);
	while (p->stats.n_conns > 2)
		loop_run_once(p->loop);
	/* It was told to stop, and to go, all the same. */
	client_close(&producer);
	while (p->service->n_sessions > 0)
		loop_run_once(p->loop);
	client_close(&consumer);
}

static void
a_session_may_go_while_somebody_waits(void **state)
{
	struct ports *p = *state;
	struct client c, consumer, producer;
	uint64_t id, stop, flush, late;

	client_open(&producer, p, PRODUCER);
	client_open(&consumer, p, CONSUMER);
	client_open(&c, p, CONTROL);
	id = slow_session(&consumer, &producer);
	flush = command(&c, M_FLUSH, id, false, 0);
	stop = command(&c, M_STOP, id, false, 0);
	late = command(&c, M_FLUSH, id, false, 0);
	assert_refused(&c, late, "is being stopped");
	assert_int_equal(client_count(&c, stop), 0);
	assert_true(client_call(&consumer, C_FREE, NULL)->ok);
	assert_done(&c, stop);
	assert_refused(&c, flush, "freed meanwhile");
	client_close(&producer);
	client_close(&consumer);
	client_close(&c);
}

static void
one_connection_waits_for_so_many_and_no_more(void **state)
{
	struct ports *p = *state;
	struct client c, consumer, producer;
	uint64_t id, last, i;

	client_open(&producer, p, PRODUCER);
	client_open(&consumer, p, CONSUMER);
	client_open(&c, p, CONTROL);
	id = slow_session(&consumer, &producer);
	for (i = 0; i < CONTROL_COMMANDS_MAX; i++)
		last = command(&c, M_STOP, id, false, 0);
	assert_false(client_wait(&c, command(&c, M_STOP, id, false, 0),
	    0)->ok);
	assert_int_equal(client_count(&c, last), 0);
	assert_true(client_call(&consumer, C_FREE, NULL)->ok);
	assert_done(&c, last);
	assert_refused(&c, command(&c, M_STOP, id, false, 0), "no session");
	client_close(&producer);
	client_close(&consumer);
	client_close(&c);
}

static void
nonsense_is_refused(void **state)
{
	struct ports *p = *state;
	struct client c;

	client_open(&c, p, CONTROL);
	assert_false(client_call(&c, M_STOP, args_string(1, "x"))->ok);
	assert_false(client_call(&c, M_STOP, args_uint(2, 1))->ok);
	assert_refused(&c, client_send(&c, M_STOP, NULL, -1),
	    "There is no session 0");
	assert_refused(&c, client_send(&c, M_STOP, args_string(2, "a\x1b"),
	    -1), "There is no session \"a\\x1b\"");
	client_close(&c);
}

static void
many_large_sessions_come_in_parts_that_clients_can_take(void **state)
{
	static char config[128 * 300];
	struct ports *p = *state;
	struct client c, consumers[16];
	sessions_reply *r;
	struct pb_writer w;
	size_t i, parts, at = 0;
	uint64_t call;

	/* The longest names, cut, and the most buffers. */
	for (i = 0; i < 128; i++)
		at += (size_t)sprintf(config + at, "buffers { size_kb: 4 name: "
		    "\"%0200zu\" } ", i);
	for (i = 0; i < 16; i++) {
		client_open(&consumers[i], p, CONSUMER);
		(void)enable(&consumers[i], config, &call);
	}
	client_open(&c, p, CONTROL);
	pb_writer_init(&w);
	pb_put_uint(&w, 3, 1);
	r = ask_with(&c, &w, &parts);
	assert_true(parts > 1);
	assert_int_equal(r->n_sessions, 16);
	for (i = 0; i < 16; i++) {
		assert_int_equal(r->sessions[i]->n_buffers, 128);
		assert_int_equal(strlen(r->sessions[i]->buffers[0]->name), 64);
		assert_non_null(r->sessions[i]->stats);
	}
	done(r);
	for (i = 0; i < 16; i++)
		client_close(&consumers[i]);
	client_close(&c);
}

static void
more_buffers_than_fit_are_left_out(void **state)
{
	static char config[2000 * 80];
	struct ports *p = *state;
	struct client c, consumer;
	sessions_reply *r;
	size_t i, at = 0;
	uint64_t call;

	p->settings.limits.max_buffers_per_session = 2000;
	for (i = 0; i < 2000; i++)
		at += (size_t)sprintf(config + at, "buffers { size_kb: 4 name: "
		    "\"%030zu\" } ", i);
	client_open(&consumer, p, CONSUMER);
	client_open(&c, p, CONTROL);
	(void)enable(&consumer, config, &call);
	r = ask_with(&c, args_uint(3, 1), NULL);
	assert_int_equal(r->n_sessions, 1);
	assert_in_range(r->sessions[0]->n_buffers, 500, 1500);
	done(r);
	client_close(&consumer);
	client_close(&c);
}

int
main(void)
{
#define T(name) \
	cmocka_unit_test_setup_teardown(name, ports_setup, ports_teardown)
	const struct CMUnitTest tests[] = {
		T(a_session_is_told_as_it_is),
		T(one_is_found_by_id_or_by_name),
		T(what_is_anothers_does_not_exist),
		T(a_stop_reaches_the_consumer_as_an_end_that_was_planned),
		T(a_stop_is_answered_when_the_file_is_complete),
		T(an_output_path_is_told_whole),
		T(a_discarded_session_is_gone_and_its_consumer_goes_on),
		T(a_detached_session_is_stopped_and_discarded),
		T(a_snapshot_is_known_as_one_and_discarded),
		T(a_deferred_session_is_started),
		T(one_that_waits_for_a_trigger_says_for_which),
		T(what_remains_is_known_on_either_clock),
		T(a_flush_says_whether_all_have_answered),
		T(whoever_waits_may_go),
		T(a_session_may_go_while_somebody_waits),
		T(one_connection_waits_for_so_many_and_no_more),
		T(nonsense_is_refused),
		T(more_buffers_than_fit_are_left_out),
		T(many_large_sessions_come_in_parts_that_clients_can_take),
	};

	return cmocka_run_group_tests_name("control_sessions", tests, NULL,
	    NULL);
}
