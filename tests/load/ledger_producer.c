#include "tests/load/ledger_producer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/load/ledger_stream.h"
#include "tests/load/load_conn.h"
#include "transport/loop/loop.h"
#include "transport/rpc/rpc_client.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define PAGE 4096u
#define RETRY_MS 30u
#define INSTANCES_MAX 64u
#define STREAMS_MAX 65536u
/* Commits wait while so much of them has not been taken. */
#define QUEUED_MAX (256u << 10)
/* A frame's worth of chunks that were gathered. */
#define COMMIT_MAX (16u << 10)

struct instance {
	uint64_t id;
	uint32_t buffer;
};

struct ledger_producer {
	struct ledger_options o;
	char name[64];
	struct rpc_client *rpc; /* NULL: waits for the next attempt */
	struct loop_timer *retry;
	unsigned connections;   /* so far; attempts that failed do not count */
	bool connected;
	bool ready;
	struct shm *shm;
	struct instance instances[INSTANCES_MAX];
	size_t n_instances;
	struct ledger_stream **streams; /* owned; all there ever were */
	unsigned *connection_of;        /* owned; of each of them */
	size_t n_streams;
	uint16_t next_writer;

	struct pb_writer commit; /* gathered */
	int64_t owed;            /* bytes: packets are whole, turns are short */
	uint64_t sent, acted;    /* commits that ask for a reply */
	bool late_patches;       /* they go with the commit after the next */
};

static uint64_t
field_value(const uint8_t *data, size_t len, uint32_t number)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, data, len);
	while (pb_next(&r, &f))
		if (f.number == number)
			return f.value;
	return 0;
}

static void
invoke_with_id(struct ledger_producer *p, const char *method, uint64_t id)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, 1, id);
	rpc_invoke(p->rpc, method, w.data, w.len, NULL, NULL);
	pb_writer_done(&w);
}

/* ---- commits ---- */

static void
committed(void *arg, bool ok, bool more, const uint8_t *msg, size_t len, int fd)
{
	struct ledger_producer *p = arg;
	size_t i;

	if (!ok && msg != NULL)
		load_die("%s: a commit was refused", p->name);
	if (!ok)
		return;
	p->acted++;
	for (i = 0; i < p->n_streams; i++)
		if (p->connection_of[i] == p->connections)
			ledger_stream_acted(p->streams[i], p->acted);
}

static void
send_commit(struct ledger_producer *p, uint64_t flush)
{
	if (flush != 0)
		pb_put_uint(&p->commit, 3, flush);
	if (p->commit.len == 0)
		return;
	if (p->commit.failed)
		load_die("no memory");
	p->sent++;
	rpc_invoke(p->rpc, "CommitData", p->commit.data, p->commit.len,
	    committed, p);
	pb_writer_reset(&p->commit);
}

static void
add_patches(struct ledger_producer *p)
{
	size_t i;

	for (i = 0; i < p->n_streams; i++)
		if (p->streams[i]->end == LEDGER_WRITING)
			ledger_stream_patch(p->streams[i], &p->commit,
			    p->sent + 1);
}

/* All that is whole, patches too. */
static void
commit_all(struct ledger_producer *p, uint64_t flush)
{
	size_t i;

	for (i = 0; i < p->n_streams; i++)
		if (p->streams[i]->end == LEDGER_WRITING)
			ledger_stream_flush(p->streams[i], &p->commit);
	add_patches(p);
	send_commit(p, flush);
}

/* ---- data sources ---- */

static void
writers_known(void *arg, bool ok, bool more, const uint8_t *msg, size_t len,
    int fd)
{
	struct ledger_producer *p = arg;
	size_t i;

	for (i = 0; ok && i < p->n_streams; i++)
		if (p->connection_of[i] == p->connections)
			p->streams[i]->open = true;
}

static void
open_stream(struct ledger_producer *p, const struct instance *in)
{
	struct ledger_stream *s = calloc(1, sizeof(*s));
	struct pb_writer w;

	p->streams = realloc(p->streams,
	    (p->n_streams + 1) * sizeof(*p->streams));
	p->connection_of = realloc(p->connection_of,
	    (p->n_streams + 1) * sizeof(*p->connection_of));
	if (s == NULL || p->streams == NULL || p->connection_of == NULL ||
	    p->n_streams == STREAMS_MAX)
		load_die("no memory, or too many sequences");
	ledger_stream_init(s, p->shm, (*p->o.next_seq_value)++,
	    p->o.packet_bytes);
	s->instance = in->id;
	s->buffer = in->buffer;
	s->writer = ++p->next_writer;
	s->patching = p->o.patches;
	s->text = p->o.text;
	s->packets_max = p->o.packets;
	p->streams[p->n_streams] = s;
	p->connection_of[p->n_streams++] = p->connections;

	pb_writer_init(&w);
	pb_put_uint(&w, 1, s->writer);
	pb_put_uint(&w, 2, s->buffer);
	rpc_invoke(p->rpc, "RegisterTraceWriter", w.data, w.len, NULL, NULL);
	pb_writer_done(&w);
}

static void
start_instance(struct ledger_producer *p, uint64_t id)
{
	size_t i, k;

	if (p->shm == NULL)
		load_die("%s: started without shared memory", p->name);
	for (i = 0; i < p->n_instances; i++) {
		if (p->instances[i].id != id)
			continue;
		for (k = 0; k < p->o.writers; k++)
			open_stream(p, &p->instances[i]);
		invoke_with_id(p, "NotifyDataSourceStarted", id);
		rpc_invoke(p->rpc, "Sync", NULL, 0, writers_known, p);
		return;
	}
	load_die("%s: an instance that was never set up", p->name);
}

static void
setup_instance(struct ledger_producer *p, const uint8_t *data, size_t len)
{
	struct instance *in;
	struct pb_reader r;
	struct pb_field f;

	if (p->n_instances == INSTANCES_MAX)
		load_die("more than %u instances", INSTANCES_MAX);
	in = &p->instances[p->n_instances++];
	memset(in, 0, sizeof(*in));
	pb_init(&r, data, len);
	while (pb_next(&r, &f)) {
		if (f.number == 1)
			in->id = f.value;
		else if (f.number == 2)
			in->buffer = (uint32_t)field_value(f.data, f.len, 2);
	}
}

/* Ends the instances that were asked to and are not in a packet's middle. */
static void
end_stopping(struct ledger_producer *p)
{
	struct ledger_stream *s;
	size_t i, k;
	bool within;

	for (i = 0; i < p->n_streams; i++) {
		s = p->streams[i];
		if (!s->stopping || s->end != LEDGER_WRITING)
			continue;
		(void)ledger_stream_write(s, 0, &p->commit);
		within = false;
		for (k = 0; k < p->n_streams; k++)
			within |= p->streams[k]->instance == s->instance &&
			    p->connection_of[k] == p->connections &&
			    p->streams[k]->end == LEDGER_WRITING &&
			    ledger_stream_is_within(p->streams[k]);
		if (within)
			continue;
		commit_all(p, 0);
		for (k = 0; k < p->n_streams; k++) {
			if (p->connection_of[k] != p->connections ||
			    p->streams[k]->instance != s->instance)
				continue;
			ledger_stream_close(p->streams[k], LEDGER_STOPPED);
			invoke_with_id(p, "UnregisterTraceWriter",
			    p->streams[k]->writer);
		}
		invoke_with_id(p, "NotifyDataSourceStopped", s->instance);
	}
}

static void
stop_instance(struct ledger_producer *p, uint64_t id)
{
	bool any = false;
	size_t i;

	for (i = 0; i < p->n_streams; i++) {
		if (p->streams[i]->instance != id ||
		    p->streams[i]->end != LEDGER_WRITING)
			continue;
		p->streams[i]->stopping = true;
		any = true;
	}
	for (i = 0; i < p->n_instances; i++)
		if (p->instances[i].id == id)
			p->instances[i] = p->instances[--p->n_instances];
	if (any)
		end_stopping(p);
	else
		invoke_with_id(p, "NotifyDataSourceStopped", id);
}

static void
setup_tracing(struct ledger_producer *p, int fd)
{
	char err[256];

	if (fd < 0)
		load_die("%s: no shared memory came", p->name);
	if (p->shm != NULL) {
		close(fd);
		return;
	}
	p->shm = shm_adopt(fd, PAGE, err, sizeof(err));
	if (p->shm == NULL)
		load_die("%s: the shared memory: %s", p->name, err);
}

static void
command(void *arg, bool ok, bool more, const uint8_t *msg, size_t len, int fd)
{
	struct ledger_producer *p = arg;
	struct pb_reader r;
	struct pb_field f;

	if (!ok)
		return;
	pb_init(&r, msg, len);
	while (pb_next(&r, &f)) {
		switch (f.number) {
		case 3: /* SetupTracing */
			setup_tracing(p, fd);
			fd = -1;
			break;
		case 6: /* SetupDataSource */
			setup_instance(p, f.data, f.len);
			break;
		case 1: /* StartDataSource */
			start_instance(p, field_value(f.data, f.len, 1));
			break;
		case 2: /* StopDataSource */
			stop_instance(p, field_value(f.data, f.len, 1));
			break;
		case 5: /* Flush */
			commit_all(p, field_value(f.data, f.len, 2));
			break;
		}
	}
	if (fd >= 0)
		close(fd);
}

/* ---- the connection ---- */

static void
registered(void *arg, bool ok, bool more, const uint8_t *msg, size_t len,
    int fd)
{
	struct ledger_producer *p = arg;

	if (!ok && msg != NULL)
		load_die("%s: the source was refused", p->name);
	p->ready = ok;
}

static void
rpc_ready(struct rpc_client *c, void *arg)
{
	struct ledger_producer *p = arg;
	struct pb_writer w;
	size_t mark;

	p->connected = true;
	p->connections++;
	pb_writer_init(&w);
	pb_put_uint(&w, 1, PAGE);
	if (p->o.shm_bytes > 0)
		pb_put_uint(&w, 2, p->o.shm_bytes);
	pb_put_string(&w, 3, p->name);
	rpc_invoke(c, "InitializeConnection", w.data, w.len, NULL, NULL);
	rpc_invoke(c, "GetAsyncCommand", NULL, 0, command, p);
	pb_writer_reset(&w);
	mark = pb_nest_begin(&w, 1);
	pb_put_string(&w, 1, p->o.source);
	pb_put_uint(&w, 2, 1); /* will_notify_on_stop */
	pb_put_uint(&w, 3, 1); /* will_notify_on_start */
	pb_nest_end(&w, mark);
	rpc_invoke(c, "RegisterDataSource", w.data, w.len, registered, p);
	pb_writer_done(&w);
}

static void
rpc_down(struct rpc_client *c, const char *text, void *arg)
{
	struct ledger_producer *p = arg;
	size_t i;

	/* As dead ones lie: what is begun stays begun. */
	for (i = 0; i < p->n_streams; i++)
		if (p->connected && p->connection_of[i] == p->connections)
			ledger_stream_close(p->streams[i], LEDGER_LOST);
	p->connected = false;
	rpc_client_free(c);
	shm_free(p->shm);
	pb_writer_reset(&p->commit);
	p->rpc = NULL;
	p->shm = NULL;
	p->ready = false;
	p->n_instances = 0;
	p->next_writer = 0;
	p->sent = p->acted = 0;
	loop_timer_set(p->retry, RETRY_MS, 0);
}

static void
connect_again(struct ledger_producer *p)
{
	static const struct rpc_client_ops ops = { rpc_ready, rpc_down, NULL };
	char err[256];

	p->rpc = rpc_client_new(p->o.loop,
	    &(struct rpc_client_setup){ .addr = &p->o.address,
	    .service = "ProducerPort", .ops = &ops, .arg = p }, err,
	    sizeof(err));
	if (p->rpc == NULL)
		load_die("%s: %s", p->name, err);
}

static void
retry_cb(void *arg)
{
	connect_again(arg);
}

struct ledger_producer *
ledger_producer_new(const struct ledger_options *o)
{
	struct ledger_producer *p = calloc(1, sizeof(*p));

	if (p == NULL ||
	    (p->retry = loop_timer_new(o->loop, retry_cb, p)) == NULL)
		load_die("no memory");
	p->o = *o;
	strncpy(p->name, o->name, sizeof(p->name) - 1);
	p->o.name = p->name;
	pb_writer_init(&p->commit);
	connect_again(p);
	return p;
}

void
ledger_producer_free(struct ledger_producer *p)
{
	size_t i;

	rpc_client_free(p->rpc);
	loop_timer_free(p->retry);
	for (i = 0; i < p->n_streams; i++) {
		ledger_stream_done(p->streams[i]);
		free(p->streams[i]);
	}
	shm_free(p->shm);
	free(p->streams);
	free(p->connection_of);
	pb_writer_done(&p->commit);
	free(p);
}

/* ---- writing ---- */

static bool
may_write(const struct ledger_stream *s)
{
	return s->open && !s->stopping && s->end == LEDGER_WRITING;
}

size_t
ledger_producer_writing(const struct ledger_producer *p)
{
	size_t i, n = 0;

	for (i = 0; i < p->n_streams; i++)
		n += may_write(p->streams[i]);
	return n;
}

void
ledger_producer_write(struct ledger_producer *p, size_t bytes)
{
	size_t n = ledger_producer_writing(p), i, each;

	if (!p->ready || rpc_client_queued(p->rpc) > QUEUED_MAX)
		return;
	/*
	 * Patches go a turn after the chunks that they are for: who is killed
	 * in between leaves packets whose size nobody knows.
	 */
	if (p->late_patches)
		add_patches(p);
	p->late_patches = !p->late_patches;
	/* What a full memory kept it from is not made up for. */
	p->owed = n == 0 || p->owed > (int64_t)bytes ? 0 :
	    p->owed + (int64_t)bytes;
	each = p->owed > 0 && n > 0 ? ((size_t)p->owed + n - 1) / n : 0;
	for (i = 0; each > 0 && i < p->n_streams; i++) {
		if (!may_write(p->streams[i]))
			continue;
		p->owed -= (int64_t)ledger_stream_write(p->streams[i], each,
		    &p->commit);
		if (p->commit.len > COMMIT_MAX)
			send_commit(p, 0);
	}
	send_commit(p, 0);
	end_stopping(p);
}

bool
ledger_producer_finish(struct ledger_producer *p)
{
	bool whole = true;
	size_t i;

	if (!p->ready)
		return true;
	for (i = 0; i < p->n_streams; i++) {
		if (!may_write(p->streams[i]))
			continue;
		(void)ledger_stream_write(p->streams[i], 0, &p->commit);
		whole &= !ledger_stream_is_within(p->streams[i]);
	}
	commit_all(p, 0);
	end_stopping(p);
	return whole;
}

bool
ledger_producer_is_ready(const struct ledger_producer *p)
{
	return p->ready;
}

bool
ledger_producer_is_quiet(const struct ledger_producer *p)
{
	return p->acted == p->sent && p->commit.len == 0;
}

void
ledger_producer_print(const struct ledger_producer *p, FILE *out)
{
	size_t i;

	for (i = 0; i < p->n_streams; i++) {
		fprintf(out, "{\"producer\": \"%s\", \"connection\": %u, ",
		    p->name, p->connection_of[i]);
		ledger_stream_print(p->streams[i], out);
		fputs("}\n", out);
	}
}
