#include "tests/unit/client/library/fake_service.h"

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "transport/connect/listener.h"
#include "transport/loop/loop.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define WAIT_MS 10000

static void
note(struct fake_service *s, const char *fmt, ...)
{
	size_t n = strlen(s->log);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->log + n, sizeof(s->log) - n, fmt, ap);
	va_end(ap);
	n = strlen(s->log);
	assert_true(n + 2 < sizeof(s->log));
	strcpy(s->log + n, " ");
}

/* The first field with this number. */
static bool
get(const uint8_t *msg, size_t len, uint32_t number, struct pb_field *f)
{
	struct pb_reader r;

	pb_init(&r, msg, len);
	while (pb_next(&r, f))
		if (f->number == number)
			return true;
	return false;
}

/* ---- methods ---- */

static enum rpc_verdict
initialize(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct fake_service *s = ctx;
	struct pb_writer w;
	struct pb_field f;

	note(s, "init");
	s->identity = *rpc_conn_identity(call.conn);
	if (get(args, len, 1, &f))
		s->page_hint = (uint32_t)f.value;
	if (get(args, len, 2, &f))
		s->shm_hint = (uint32_t)f.value;
	if (get(args, len, 3, &f))
		snprintf(s->name, sizeof(s->name), "%.*s", (int)f.len,
		    (const char *)f.data);
	if (s->refuse)
		return RPC_REJECT;
	pb_writer_init(&w);
	pb_put_uint(&w, 2, 1);
	pb_put_uint(&w, 3, s->emulate);
	rpc_reply(call, w.data, w.len, false, -1);
	pb_writer_done(&w);
	return RPC_OK;
}

static enum rpc_verdict
get_async_command(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct fake_service *s = ctx;

	note(s, "async");
	s->commands = call;
	s->has_commands = true;
	return RPC_OK;
}

static enum rpc_verdict
register_source(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct fake_service *s = ctx;
	struct pb_field d, f;

	if (s->refuse_sources)
		return RPC_REJECT;
	assert_true(get(args, len, 1, &d));
	assert_true(get(d.data, d.len, 1, &f));
	note(s, "reg:%.*s", (int)f.len, (const char *)f.data);
	assert_true(get(d.data, d.len, 2, &f) && f.value == 1);
	assert_true(get(d.data, d.len, 3, &f) && f.value == 1);
	if (get(d.data, d.len, 4, &f))
		note(s, "incremental");
	if (get(d.data, d.len, 9, &f))
		note(s, "noflush");
	rpc_reply(call, NULL, 0, false, -1);
	return RPC_OK;
}

static enum rpc_verdict
note_number(void *ctx, struct rpc_call call, const uint8_t *args, size_t len,
    const char *word)
{
	struct fake_service *s = ctx;
	struct pb_field f;

	assert_true(get(args, len, 1, &f));
	assert_false(call.wants_reply);
	note(s, "%s:%llu", word, (unsigned long long)f.value);
	return RPC_OK;
}

static enum rpc_verdict
register_writer(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct fake_service *s = ctx;
	struct pb_field f;

	note_number(ctx, call, args, len, "writer");
	assert_true(get(args, len, 2, &f));
	note(s, "into:%llu", (unsigned long long)f.value);
	return RPC_OK;
}

static enum rpc_verdict
unregister_writer(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	return note_number(ctx, call, args, len, "unwriter");
}

static enum rpc_verdict
notify_started(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	return note_number(ctx, call, args, len, "started");
}

static enum rpc_verdict
notify_stopped(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	return note_number(ctx, call, args, len, "stopped");
}

static enum rpc_verdict
commit(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct fake_service *s = ctx;
	struct pb_field f;

	note(s, "commit");
	if (!s->ignore_commits)
		fake_memory_commit(&s->memory, args, len);
	if (get(args, len, 3, &f))
		note(s, "flushed:%llu", (unsigned long long)f.value);
	rpc_reply(call, NULL, 0, false, -1);
	return RPC_OK;
}

static enum rpc_verdict
activate_triggers(void *ctx, struct rpc_call call, const uint8_t *args,
    size_t len)
{
	struct fake_service *s = ctx;
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, args, len);
	while (pb_next(&r, &f))
		note(s, "trigger:%.*s", (int)f.len, (const char *)f.data);
	return RPC_OK;
}

static enum rpc_verdict
answer_sync(void *ctx, struct rpc_call call, const uint8_t *args, size_t len)
{
	struct fake_service *s = ctx;

	note(s, "sync");
	rpc_reply(call, NULL, 0, false, -1);
	return RPC_OK;
}

static const struct rpc_method methods[] = {
	{ "InitializeConnection", initialize },
	{ "RegisterDataSource", register_source },
	{ "CommitData", commit },
	{ "GetAsyncCommand", get_async_command },
	{ "RegisterTraceWriter", register_writer },
	{ "UnregisterTraceWriter", unregister_writer },
	{ "NotifyDataSourceStarted", notify_started },
	{ "NotifyDataSourceStopped", notify_stopped },
	{ "ActivateTriggers", activate_triggers },
	{ "Sync", answer_sync },
};

/* ---- life ---- */

static struct fake_service *bound; /* rpc_service.arg is const data */

static void *
bind_cb(struct rpc_conn *c, void *arg)
{
	struct fake_service *s = bound;

	s->conn = c;
	s->connections++;
	note(s, "bind");
	return s;
}

static void
gone_cb(void *ctx)
{
	struct fake_service *s = ctx;

	s->conn = NULL;
	s->has_commands = false;
	note(s, "gone");
	shm_free(s->shm);
	s->shm = NULL;
	fake_memory_done(&s->memory);
	fake_memory_init(&s->memory, NULL);
}

static const struct rpc_service service = {
	.name = "ProducerPort",
	.methods = methods,
	.n_methods = sizeof(methods) / sizeof(methods[0]),
	.bind = bind_cb,
	.gone = gone_cb,
};
static const struct rpc_service *const services[] = { &service };

static void
accept_cb(struct listener *l, int fd, void *arg)
{
	struct fake_service *s = arg;

	assert_non_null(rpc_conn_new(s->loop, fd, &(struct rpc_conn_setup){
	    .services = services, .n_services = 1, .stats = &s->stats }));
}

void
fake_service_listen(struct fake_service *s)
{
	char err[256] = "", text[ADDR_TEXT_MAX];

	s->listener = listener_new(s->loop,
	    &(struct listener_setup){ .addr = &s->addr, .fn = accept_cb,
	    .arg = s }, err, sizeof(err));
	assert_string_equal(err, "");
	assert_non_null(s->listener);
	if (s->addr.kind == ADDR_TCP) {
		snprintf(text, sizeof(text), "127.0.0.1:%d",
		    listener_port(s->listener));
		assert_int_equal(addr_parse(&s->addr, text, err, sizeof(err)),
		    0);
	}
}

void
fake_service_init(struct fake_service *s, struct loop *l, bool tcp)
{
	char text[ADDR_TEXT_MAX], err[256];

	memset(s, 0, sizeof(*s));
	s->loop = l;
	s->emulate = tcp;
	bound = s;
	strcpy(s->dir, "/tmp/tributary-test-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	if (tcp)
		strcpy(text, "127.0.0.1:0");
	else
		snprintf(text, sizeof(text), "%s/producer", s->dir);
	assert_int_equal(addr_parse(&s->addr, text, err, sizeof(err)), 0);
	fake_memory_init(&s->memory, NULL);
	fake_service_listen(s);
}

static bool
is_gone(void *arg)
{
	struct fake_service *s = arg;

	return s->conn == NULL;
}

void
fake_service_close(struct fake_service *s)
{
	listener_free(s->listener);
	s->listener = NULL;
	rpc_conns_close_all(&s->stats);
	assert_true(fake_service_wait(s, is_gone, s));
}

void
fake_service_done(struct fake_service *s)
{
	fake_service_close(s);
	fake_memory_done(&s->memory);
	rmdir(s->dir);
}

static void
tick(void *arg)
{
}

bool
fake_service_wait(struct fake_service *s, bool (*cond)(void *arg), void *arg)
{
	uint64_t until = loop_now_ms() + WAIT_MS;
	struct loop_timer *t = loop_timer_new(s->loop, tick, NULL);

	/* Each turn waits for an event; this bounds how long. */
	assert_non_null(t);
	loop_timer_set(t, 20, 1);
	while (!cond(arg) && loop_now_ms() < until)
		event_base_loop(loop_base(s->loop), EVLOOP_ONCE);
	loop_timer_free(t);
	return cond(arg);
}

struct logged {
	const struct fake_service *s;
	const char *text;
};

static bool
is_logged(void *arg)
{
	struct logged *l = arg;

	return fake_service_logged(l->s, l->text);
}

bool
fake_service_wait_log(struct fake_service *s, const char *text)
{
	struct logged l = { s, text };

	if (fake_service_wait(s, is_logged, &l))
		return true;
	print_message("waited for \"%s\", got \"%s\"\n", text, s->log);
	return false;
}

bool
fake_service_logged(const struct fake_service *s, const char *text)
{
	return strstr(s->log, text) != NULL;
}

/* ---- commands ---- */

void
fake_service_command(struct fake_service *s, const void *msg, size_t len,
    int fd)
{
	assert_true(s->has_commands);
	rpc_reply(s->commands, msg, len, true, fd);
}

void
fake_service_setup_tracing(struct fake_service *s, size_t size, size_t page)
{
	struct pb_writer w;
	size_t mark;

	if (s->shm == NULL) {
		if (!s->emulate) {
			s->shm = shm_new(size, page);
			assert_non_null(s->shm);
		}
		fake_memory_done(&s->memory);
		fake_memory_init(&s->memory, s->shm);
	}
	pb_writer_init(&w);
	mark = pb_nest_begin(&w, 3);
	pb_put_uint(&w, 1, page / 1024);
	pb_nest_end(&w, mark);
	fake_service_command(s, w.data, w.len,
	    s->shm != NULL ? shm_fd(s->shm) : -1);
	pb_writer_done(&w);
}

void
fake_service_data_source(struct fake_service *s, int which, uint64_t id,
    const char *name, uint32_t buffer, const void *config, size_t len)
{
	struct pb_writer w;
	size_t mark, inner;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w, (uint32_t)which);
	pb_put_uint(&w, 1, id);
	inner = pb_nest_begin(&w, 2);
	pb_put_string(&w, 1, name);
	pb_put_uint(&w, 2, buffer);
	pb_put_uint(&w, 4, 90 + id); /* tracing_session_id */
	if (config != NULL)
		pb_put_raw(&w, config, len);
	pb_nest_end(&w, inner);
	pb_nest_end(&w, mark);
	fake_service_command(s, w.data, w.len, -1);
	pb_writer_done(&w);
}

static void
command_id(struct fake_service *s, uint32_t which, uint64_t id,
    uint64_t request_id)
{
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w, which);
	pb_put_uint(&w, 1, id);
	if (request_id != 0)
		pb_put_uint(&w, 2, request_id);
	pb_nest_end(&w, mark);
	fake_service_command(s, w.data, w.len, -1);
	pb_writer_done(&w);
}

void
fake_service_stop(struct fake_service *s, uint64_t id)
{
	command_id(s, 2, id, 0);
}

void
fake_service_flush(struct fake_service *s, uint64_t request_id, uint64_t id)
{
	command_id(s, 5, id, request_id);
}

void
fake_service_clear(struct fake_service *s, uint64_t id)
{
	command_id(s, 7, id, 0);
}
