#include "tests/unit/service/session/fixture.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "protos/text_parse.h"
#include "service/config/config.h"
#include "service/ingest/commit.h"
#include "service/output/packet_out.h"
#include "service/output/readback.h"
#include "service/session/flush.h"
#include "service/session/instance.h"
#include "transport/base/log.h"
#include "transport/wire/pb_reader.h"

#define WAIT_MS 50000

void (*fixture_pass_time)(void);

int
fixture_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fd;

	assert_non_null(f);
	log_init("test", LOG_LEVEL_ERROR);
	/* A test that fails leaves its frame: say at once which one it was. */
	setvbuf(stdout, NULL, _IONBF, 0);
	snprintf(f->dir, sizeof(f->dir), "/tmp/tributary-test-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	assert_non_null(f->loop = loop_new());
	assert_int_equal(settings_init(&f->settings), 0);
	fd = open(f->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_non_null(f->service = service_new(f->loop, &f->settings, fd));
	*state = f;
	return 0;
}

static bool
no_sessions(void *arg)
{
	return TAILQ_EMPTY(&((struct service *)arg)->sessions);
}

int
fixture_teardown(void **state)
{
	struct fixture *f = *state;
	const struct session *s;
	char cmd[96];

	/* What failed is said above: nobody will end these. */
	TAILQ_FOREACH (s, &f->service->sessions, link)
		if (s->ops != NULL || s->detach_key != NULL) {
			print_error("the test left session %llu behind\n",
			    (unsigned long long)s->id);
			return -1;
		}
	fixture_wait(f, no_sessions, f->service);
	service_free(f->service);
	loop_free(f->loop);
	settings_done(&f->settings);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", f->dir);
	assert_int_equal(system(cmd), 0);
	free(f);
	return 0;
}

void
fixture_wait(struct fixture *f, bool (*cond)(void *arg), void *arg)
{
	uint64_t end = loop_now_ms() + WAIT_MS;

	while (!cond(arg)) {
		assert_true(loop_now_ms() < end);
		loop_run_once(f->loop);
		if (fixture_pass_time != NULL)
			fixture_pass_time();
	}
}

/* ---- producer ---- */

static void
note(struct fake_producer *fp, const char *what, uint64_t id)
{
	if (fp->quiet)
		return;
	assert_true(fp->n_log < FAKE_LOG_MAX);
	snprintf(fp->log[fp->n_log++], sizeof(fp->log[0]), "%s %llu", what,
	    (unsigned long long)id);
}

static void
op_setup_tracing(void *port, struct shm *shm, size_t page_size)
{
	struct fake_producer *fp = port;

	fp->shm = shm;
	note(fp, "tracing", page_size);
}

static void
op_setup(void *port, uint64_t id, const uint8_t *config, size_t len)
{
	struct fake_producer *fp = port;
	struct pb_reader r;
	struct pb_field f;

	note(fp, "setup", id);
	fp->last_instance = id;
	assert_true(len <= sizeof(fp->last_config));
	memcpy(fp->last_config, config, len);
	fp->last_config_len = len;
	pb_init(&r, config, len);
	while (pb_next(&r, &f))
		if (f.number == 2)
			fp->last_buffer = (uint16_t)f.value;
}

static void
op_start(void *port, uint64_t id, const uint8_t *config, size_t len)
{
	note(port, "start", id);
}

static void
op_stop(void *port, uint64_t id)
{
	note(port, "stop", id);
}

static void
ack_flush(void *arg)
{
	struct fake_producer *fp = arg;
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, 3, fp->last_flush);
	assert_int_equal(fake_commit_data(fp->p, w.data, w.len), COMMIT_OK);
	pb_writer_done(&w);
}

static void
op_flush(void *port, uint64_t request_id, const uint64_t *ids, size_t n,
    uint64_t flags)
{
	struct fake_producer *fp = port;

	note(fp, "flush", request_id);
	fp->last_flush = request_id;
	fp->last_flush_flags = flags;
	assert_true(n <= 8);
	memcpy(fp->last_flush_ids, ids, n * sizeof(*ids));
	fp->last_flush_n = n;
	/* Like a real one: it answers on a later turn. */
	if (fp->ack_flushes)
		loop_defer(fp->f->loop, &fp->ack_call, ack_flush, fp);
}

static void
op_clear(void *port, const uint64_t *ids, size_t n)
{
	note(port, "clear", ids[0]);
}

static void
op_resume(void *port)
{
	((struct fake_producer *)port)->resumed = true;
}

static const struct producer_ops producer_ops = {
	.setup_tracing = op_setup_tracing,
	.setup_data_source = op_setup,
	.start_data_source = op_start,
	.stop_data_source = op_stop,
	.flush = op_flush,
	.clear_incremental_state = op_clear,
	.resume = op_resume,
};

void
fake_producer_init(struct fake_producer *fp, struct fixture *f,
    const char *name, bool emulated)
{
	struct producer_hello hello = {
		.name = name,
		.uid = 1000,
		.pid = 4242,
		.emulated = emulated,
		.scrape = true,
	};

	fake_producer_hello(fp, f, &hello);
}

void
fake_producer_hello(struct fake_producer *fp, struct fixture *f,
    struct producer_hello *hello)
{
	const char *why = NULL;

	memset(fp, 0, sizeof(*fp));
	fp->f = f;
	if (hello->machine == NULL)
		hello->machine = &f->service->host;
	fp->p = producer_new(f->service, hello, &producer_ops, fp, &why);
	assert_non_null(fp->p);
}

void
fake_producer_done(struct fake_producer *fp)
{
	if (fp->p != NULL)
		producer_gone(fp->p);
	fp->p = NULL;
	loop_cancel(fp->f->loop, fp);
}

void
fake_producer_register(struct fake_producer *fp, const char *data_source,
    bool notify_start, bool notify_stop)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_string(&w, 1, data_source);
	pb_put_uint(&w, 2, notify_stop);
	pb_put_uint(&w, 3, notify_start);
	assert_null(producer_register(fp->p, w.data, w.len));
	pb_writer_done(&w);
}

bool
fake_producer_saw(const struct fake_producer *fp, const char *line)
{
	size_t i;

	for (i = 0; i < fp->n_log; i++)
		if (strcmp(fp->log[i], line) == 0)
			return true;
	return false;
}

size_t
fake_producer_count(const struct fake_producer *fp, const char *prefix)
{
	size_t i, n = 0;

	for (i = 0; i < fp->n_log; i++)
		n += strncmp(fp->log[i], prefix, strlen(prefix)) == 0;
	return n;
}

void
fake_packet(struct pb_writer *out, uint64_t ts, const char *str)
{
	size_t mark;

	pb_put_uint(out, 8, ts);
	mark = pb_nest_begin(out, 900);
	pb_put_string(out, 1, str);
	pb_nest_end(out, mark);
}

void
fake_raw_chunk(struct pb_writer *out, uint16_t writer, uint32_t chunk_id,
    uint16_t n, uint8_t flags, const void *fragments, size_t len)
{
	/* ten bits of count, six of flags */
	uint16_t count = (uint16_t)(n | flags << 10);

	pb_put_raw(out, &chunk_id, sizeof(chunk_id));
	pb_put_raw(out, &writer, sizeof(writer));
	pb_put_raw(out, &count, sizeof(count));
	pb_put_raw(out, fragments, len);
}

void
fake_chunk(struct pb_writer *out, uint16_t writer, uint32_t chunk_id,
    uint64_t ts, const char *str)
{
	struct pb_writer packet, fragment;

	pb_writer_init(&packet);
	pb_writer_init(&fragment);
	fake_packet(&packet, ts, str);
	pb_put_varint(&fragment, packet.len);
	pb_put_raw(&fragment, packet.data, packet.len);
	fake_raw_chunk(out, writer, chunk_id, 1, 0, fragment.data,
	    fragment.len);
	pb_writer_done(&packet);
	pb_writer_done(&fragment);
}

void
fake_move(struct pb_writer *request, uint32_t page, uint32_t index,
    uint32_t buffer, const struct pb_writer *chunk)
{
	size_t mark = pb_nest_begin(request, 1);

	pb_put_uint(request, 1, page);
	pb_put_uint(request, 2, index);
	pb_put_uint(request, 3, buffer);
	if (chunk != NULL)
		pb_put_bytes(request, 4, chunk->data, chunk->len);
	pb_nest_end(request, mark);
}

enum commit_verdict
fake_commit_data(struct producer *p, const uint8_t *request, size_t len)
{
	uint64_t flush_id = 0;
	enum commit_verdict v = commit_data(p, request, len, &flush_id);

	if (flush_id != 0)
		flush_ack(p, flush_id);
	return v;
}

int
fake_commit_request(struct fake_producer *fp, struct pb_writer *request)
{
	int v = (int)fake_commit_data(fp->p, request->data, request->len);

	pb_writer_done(request);
	return v;
}

int
fake_commit(struct fake_producer *fp, uint16_t buffer, uint16_t writer,
    uint32_t chunk_id, uint64_t ts, const char *str)
{
	struct pb_writer chunk, w;

	pb_writer_init(&chunk);
	pb_writer_init(&w);
	fake_chunk(&chunk, writer, chunk_id, ts, str);
	fake_move(&w, 0, 0, buffer, &chunk);
	pb_writer_done(&chunk);
	return fake_commit_request(fp, &w);
}

void
fake_shm_packet(struct fake_producer *fp, uint16_t writer, uint32_t chunk_id,
    uint64_t ts, const char *str, bool complete, struct shm_slot *slot)
{
	struct pb_writer packet, fragment;

	pb_writer_init(&packet);
	pb_writer_init(&fragment);
	fake_packet(&packet, ts, str);
	pb_put_varint(&fragment, packet.len);
	pb_put_raw(&fragment, packet.data, packet.len);
	writers_register(fp->p, writer, fp->last_buffer);
	assert_true(shm_acquire(fp->shm, SHM_DIV1, writer, chunk_id, 0, slot));
	assert_true(fragment.len <= slot->len);
	memcpy(slot->payload, fragment.data, fragment.len);
	shm_add_fragment(fp->shm, slot);
	if (complete)
		shm_complete(fp->shm, slot);
	pb_writer_done(&packet);
	pb_writer_done(&fragment);
}

/* ---- consumer ---- */

static void
on_disabled(void *port, const char *error)
{
	struct fake_consumer *c = port;

	assert_false(c->disabled); /* told once */
	c->disabled = true;
	snprintf(c->error, sizeof(c->error), "%s", error != NULL ? error : "");
}

static void
on_instance(void *port, const char *producer, const char *data_source,
    bool started)
{
	struct fake_consumer *c = port;

	if (started)
		c->started++;
	else
		c->stopped++;
}

static void
on_all_started(void *port)
{
	((struct fake_consumer *)port)->all_started = true;
}

static void
on_clone(void *port, uint64_t session, const struct clone_trigger *t)
{
	((struct fake_consumer *)port)->clone_hits++;
}

const struct consumer_ops fake_consumer_ops = {
	.disabled = on_disabled,
	.instance_changed = on_instance,
	.all_started = on_all_started,
	.clone_trigger_hit = on_clone,
};

struct session *
fake_enable(struct fixture *f, struct fake_consumer *c,
    const char *config_text, int fd)
{
	return fake_enable_as(f, c, config_text, fd, 1000);
}

struct machine *
fake_machine(struct fixture *f, uint32_t id, const char *name)
{
	struct machine_claim c = { .id = id, .name = name };
	struct machine *m = machine_claim(f->service->machines, &c);

	assert_non_null(m);
	return m;
}

const struct principal *
fake_user(uint32_t uid)
{
	static struct principal users[8];
	static size_t next;
	struct principal *p = &users[next++ % 8];

	*p = (struct principal){ .auth = PEER_UNIX, .uid = uid,
		.admin = uid == 0 };
	return p;
}

struct session *
fake_enable_as(struct fixture *f, struct fake_consumer *c,
    const char *config_text, int fd, int32_t uid)
{
	struct config *config;
	uint8_t *bytes;
	size_t len;

	memset(c, 0, sizeof(*c));
	assert_int_equal(text_parse(&perfetto__protos__trace_config__descriptor,
	    config_text, strlen(config_text), &bytes, &len, NULL), 0);
	config = config_new(bytes, len, fd >= 0, &f->settings.limits, c->error,
	    sizeof(c->error));
	free(bytes);
	if (config == NULL) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	c->s = session_new(f->service, &(struct session_request){
	    .config = config, .fd = fd, .owner = fake_user((uint32_t)uid),
	    .ops = &fake_consumer_ops, .port = c }, c->error, sizeof(c->error));
	return c->s;
}

bool
fake_disabled(void *consumer)
{
	return ((struct fake_consumer *)consumer)->disabled;
}

void
fake_end(struct fixture *f, struct fake_consumer *c)
{
	session_disable(c->s, NULL);
	fixture_wait(f, fake_disabled, c);
	session_free(c->s);
	c->s = NULL;
}

static void
add_packet(struct fake_trace *t, const uint8_t *data, size_t len)
{
	/* Room for a power of two: sanitizers copy all of it each time. */
	if ((t->n & (t->n - 1)) == 0) {
		t->packets = realloc(t->packets,
		    (t->n == 0 ? 1 : 2 * t->n) * sizeof(*t->packets));
		assert_non_null(t->packets);
	}
	t->packets[t->n] = perfetto__protos__trace_packet__unpack(NULL, len,
	    data);
	assert_non_null(t->packets[t->n]);
	t->n++;
}

/* ReadBuffersResponse: slices (2) of {data = 1, last = 2}. */
static void
add_packets(struct fake_trace *t, const uint8_t *msg, size_t len,
    struct pb_writer *cut)
{
	struct pb_reader r, q;
	struct pb_field f, g;

	pb_init(&r, msg, len);
	while (pb_next(&r, &f)) {
		assert_int_equal(f.number, 2);
		pb_init(&q, f.data, f.len);
		while (pb_next(&q, &g)) {
			if (g.number == 1) {
				pb_put_raw(cut, g.data, g.len);
				continue;
			}
			assert_int_equal(g.value, 1);
			add_packet(t, cut->data, cut->len);
			pb_writer_reset(cut);
		}
	}
	assert_false(r.bad);
}

void
fake_read(struct session *s, struct fake_trace *t)
{
	struct packet_out *out = packet_out_new_reply();
	enum readback_result r;
	struct pb_writer cut;
	const uint8_t *msg;
	size_t len;

	memset(t, 0, sizeof(*t));
	pb_writer_init(&cut);
	readback_begin(s->readback);
	do {
		r = packet_out_room(out) ?
		    readback_fill(s->readback, out, NULL) : READBACK_FULL;
		msg = packet_out_reply(out, &len);
		add_packets(t, msg, len, &cut);
		packet_out_next(out);
	} while (r != READBACK_DONE || !packet_out_empty(out));
	assert_int_equal(cut.len, 0);
	pb_writer_done(&cut);
	packet_out_free(out);
}

void
fake_read_file(const char *path, struct fake_trace *t)
{
	FILE *file = fopen(path, "r");
	struct pb_reader r;
	struct pb_field f;
	uint8_t *data;
	long len;

	memset(t, 0, sizeof(*t));
	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	len = ftell(file);
	rewind(file);
	data = malloc((size_t)len + 1);
	assert_int_equal(fread(data, 1, (size_t)len, file), len);
	fclose(file);
	pb_init(&r, data, (size_t)len);
	while (pb_next(&r, &f)) {
		assert_int_equal(f.number, 1);
		add_packet(t, f.data, f.len);
	}
	assert_false(r.bad);
	free(data);
}

void
fake_trace_done(struct fake_trace *t)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		perfetto__protos__trace_packet__free_unpacked(t->packets[i],
		    NULL);
	free(t->packets);
}

size_t
fake_trace_count(const struct fake_trace *t, const char *str)
{
	size_t i, n = 0;

	for (i = 0; i < t->n; i++)
		if (t->packets[i]->data_case ==
		    PERFETTO__PROTOS__TRACE_PACKET__DATA_FOR_TESTING &&
		    (str == NULL || (t->packets[i]->for_testing->str != NULL &&
		    strcmp(t->packets[i]->for_testing->str, str) == 0)))
			n++;
	return n;
}

void
fake_trace_text(const struct fake_trace *t, char *out, size_t size)
{
	size_t i, at = 0;

	out[0] = '\0';
	for (i = 0; i < t->n; i++)
		if (t->packets[i]->data_case ==
		    PERFETTO__PROTOS__TRACE_PACKET__DATA_FOR_TESTING)
			at += (size_t)snprintf(out + at, size - at, "%s ",
			    t->packets[i]->for_testing->str);
	assert_true(at < size);
}
