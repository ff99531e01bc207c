/*
 * The relay's end: its real outbox, and what an uplink does with it.
 *
 * A kill is a copy of its files as they are between two calls: all that is in
 * them is there for the next process, and nothing else.
 */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protos/link.pb-c.h"
#include "protos/producer_port.pb-c.h"
#include "relay/outbox/outbox.h"
#include "tests/unit/link/model.h"
#include "transport/link/link_zstd.h"
#include "transport/loop/loop.h"
#include "transport/wire/pb_writer.h"

#define PRODUCERS_MAX 12
#define LOSSES_MAX 8

#define WHY(name) TRIBUTARY__LINK_OPENED__WHY__##name
#define COMMAND(name) PERFETTO__PROTOS__GET_ASYNC_COMMAND_RESPONSE__CMD_##name
#define LOSS(cause) TRIBUTARY__LINK_LOSS_CAUSE__LINK_LOSS_##cause

struct local_producer {
	uint32_t channel;
	struct said_channel *said; /* NULL: not announced */
	int busy_writer;           /* most chunks are its */
	uint64_t instance;         /* 0: none was started */
	uint64_t bytes_said;
	uint64_t bytes_sent;
	/* Its channel was empty: since then it waits for its turn. */
	bool waits;
	uint64_t others;           /* bytes that were sent meanwhile */
};

struct relay {
	struct book *book;
	struct relay_plan plan;
	struct loop *loop;
	unsigned life; /* which process it is */
	char dir[64];  /* of this life */
	struct outbox *outbox;
	int state_dirfd;
	bool linked;   /* what producers say goes into the outbox */
	bool overflow;
	struct local_producer producers[PRODUCERS_MAX];
	size_t n_producers;

	/* A killed process's channels, on their way up. */
	bool recovering;
	uint32_t old_at;
	uint32_t old_end;

	struct wire *wire;
	bool open;
	struct outbox_state opened_with;
	struct link_in in;
	struct link_compressor *zip;
	struct link_decompressor *unzip;
	uint64_t sent; /* on this connection */
	uint64_t sent_ever;
	uint64_t sent_new;
	uint64_t sent_again;
	uint64_t waits;
	uint64_t longest_wait;
};

/* ---- its files ---- */

static void
copy_file(int from_dir, int to_dir, const char *name)
{
	int from = openat(from_dir, name, O_RDONLY);
	int to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
	static char data[1 << 16];
	ssize_t n;
	off_t at = 0;

	MODEL_CHECK(from >= 0 && to >= 0);
	while ((n = read(from, data, sizeof(data))) > 0) {
		MODEL_CHECK(pwrite(to, data, (size_t)n, at) == n);
		at += n;
	}
	MODEL_CHECK(n == 0);
	close(from);
	close(to);
}

static void
copy_folder(const char *from, const char *to)
{
	int from_dir, to_dir;
	struct dirent *e;
	DIR *d;

	MODEL_CHECK(mkdir(to, 0700) == 0);
	MODEL_CHECK((d = opendir(from)) != NULL);
	from_dir = dirfd(d);
	MODEL_CHECK((to_dir = open(to, O_RDONLY | O_DIRECTORY)) >= 0);
	while ((e = readdir(d)) != NULL)
		if (e->d_type == DT_REG)
			copy_file(from_dir, to_dir, e->d_name);
	close(to_dir);
	closedir(d);
}

static int
remove_one(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	return remove(path);
}

static void
remove_folder(const char *path)
{
	nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Folders of a life: DIR/LIFE-state and DIR/LIFE-spool. */
static const char *
folder(const struct relay *r, unsigned life, const char *what)
{
	static char path[2][128];
	static unsigned which;

	which ^= 1;
	snprintf(path[which], sizeof(path[which]), "%s/%u-%s", r->dir, life,
	    what);
	return path[which];
}

static void
op_ready(void *arg)
{
}

static void
op_overflow(void *arg)
{
	struct relay *r = arg;

	r->overflow = true;
}

static void
open_outbox(struct relay *r)
{
	static const struct outbox_ops ops = { .ready = op_ready,
		.overflow = op_overflow };
	struct outbox_setup setup = {
		.loop = r->loop,
		.memory_bytes = r->plan.memory_bytes,
		.spool_bytes = r->plan.spool_bytes,
		.drop = r->plan.drop_newest ? RELAY_DROP_NEWEST :
		    RELAY_DROP_OLDEST,
		.synchronous = true,
		.ops = &ops,
		.arg = r,
	};
	char err[256];

	r->state_dirfd = open(folder(r, r->life, "state"),
	    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MODEL_CHECK(r->state_dirfd >= 0);
	setup.state_dirfd = r->state_dirfd;
	if (r->plan.spool_bytes > 0)
		setup.spool_dir = folder(r, r->life, "spool");
	r->outbox = outbox_open(&setup, err, sizeof(err));
	if (r->outbox == NULL)
		model_fail(__FILE__, __LINE__, err);
}

static void
close_outbox(struct relay *r)
{
	outbox_close(r->outbox);
	close(r->state_dirfd);
	remove_folder(folder(r, r->life, "state"));
	remove_folder(folder(r, r->life, "spool"));
}

struct relay *
relay_new(struct book *b, const struct relay_plan *plan)
{
	struct relay *r = calloc(1, sizeof(*r));

	MODEL_CHECK(r != NULL);
	r->book = b;
	r->plan = *plan;
	MODEL_CHECK((r->loop = loop_new()) != NULL);
	snprintf(r->dir, sizeof(r->dir), "/tmp/link-model-XXXXXX");
	MODEL_CHECK(mkdtemp(r->dir) != NULL);
	MODEL_CHECK(mkdir(folder(r, 0, "state"), 0700) == 0);
	MODEL_CHECK(mkdir(folder(r, 0, "spool"), 0700) == 0);
	open_outbox(r);
	return r;
}

void
relay_free(struct relay *r)
{
	if (r == NULL)
		return;
	relay_hang_up(r);
	close_outbox(r);
	loop_free(r->loop);
	remove_folder(r->dir);
	free(r);
}

/* ---- producers ---- */

static struct local_producer *
any_producer(struct relay *r)
{
	return r->n_producers > 0 ?
	    &r->producers[model_below((uint32_t)r->n_producers)] : NULL;
}

static void
announce(struct relay *r, struct local_producer *p)
{
	p->said = book_channel(r->book, p->channel);
	p->instance = 0;
	outbox_put(r->outbox, p->channel, LINK_UP_OPEN, "\x0a\x01p", 3, 0);
	if (r->book->real)
		outbox_put(r->outbox, p->channel, LINK_UP_REGISTER_SOURCE,
		    "\x0a\x03src", 5, 0);
}

void
relay_begin_producer(struct relay *r)
{
	struct local_producer *p;

	if (r->n_producers == PRODUCERS_MAX)
		return;
	p = &r->producers[r->n_producers++];
	memset(p, 0, sizeof(*p));
	p->channel = outbox_new_channel(r->outbox);
	p->busy_writer = (int)model_below(WRITERS_MAX);
	if (r->linked)
		announce(r, p);
}

static void
close_channel(struct relay *r, struct local_producer *p)
{
	if (p->said == NULL)
		return;
	p->said->closed_said = true;
	outbox_put(r->outbox, p->channel, LINK_UP_CLOSE, NULL, 0, 0);
	p->said = NULL;
}

void
relay_end_producer(struct relay *r)
{
	struct local_producer *p = any_producer(r);

	if (p == NULL)
		return;
	close_channel(r, p);
	*p = r->producers[--r->n_producers];
}

/* A block was sent for the first time. */
static void
count_turns(struct relay *r, const struct outbox_block *b)
{
	struct local_producer *p;
	size_t i;

	for (i = 0; i < r->n_producers; i++) {
		p = &r->producers[i];
		if (p->channel != b->channel) {
			p->others += b->len;
			continue;
		}
		p->bytes_sent += b->len;
		if (p->waits)
			r->waits++;
		if (p->waits && p->others > r->longest_wait)
			r->longest_wait = p->others;
		p->waits = false;
	}
}

static void
say_chunk(struct relay *r, struct local_producer *p)
{
	int writer = model_chance(70) ? p->busy_writer :
	    (int)model_below(WRITERS_MAX);
	struct said_chunk k = book_think_of_chunk(r->book, p->said, writer,
	    r->plan.drop_newest, r->plan.chunk_max);
	struct link_loss loss;
	uint8_t *at;
	bool empty;

	empty = outbox_channel_is_empty(r->outbox, p->channel);
	at = outbox_reserve(r->outbox, p->channel, CHUNK_COMMIT_MAX(k.bytes),
	    true);
	if (at == NULL) {
		book_say_refused(p->said, writer, &k, &loss);
		outbox_dropped(r->outbox, p->channel, &loss);
		return;
	}
	if (model_chance(2)) {
		outbox_commit(r->outbox, p->channel, 0); /* thought better */
		return;
	}
	outbox_commit(r->outbox, p->channel,
	    book_encode_chunk(r->book, p->said, writer, &k, at));
	book_say_chunk(p->said, writer, &k);
	p->bytes_said += k.bytes;
	if (empty) {
		p->waits = true;
		p->others = 0;
	}
}

void
relay_flood(struct relay *r, uint64_t backlog, uint32_t bytes)
{
	struct local_producer *p;
	size_t i;

	r->plan.chunk_max = bytes;
	for (i = 0; i < r->n_producers; i++) {
		p = &r->producers[i];
		if (p->said == NULL)
			continue;
		if (i == 0 && outbox_channel_is_empty(r->outbox, p->channel))
			say_chunk(r, p);
		/* what is said is a bit less than what is sent */
		while (i > 0 && p->bytes_said < p->bytes_sent + backlog)
			say_chunk(r, p);
	}
}

uint64_t
relay_longest_wait(const struct relay *r, uint64_t *waits)
{
	*waits = r->waits;
	return r->longest_wait;
}

void
relay_say_chunks(struct relay *r, unsigned n)
{
	struct local_producer *p = any_producer(r);

	if (p == NULL || p->said == NULL || p->said->buffer == 0)
		return;
	while (n-- > 0)
		say_chunk(r, p);
}

void
relay_say_control(struct relay *r)
{
	struct local_producer *p = any_producer(r);
	char text[300];
	size_t len;

	if (p == NULL || p->said == NULL)
		return;
	memset(text, '.', sizeof(text));
	len = book_say_control(p->said, text, sizeof(text));
	if (model_chance(20)) {
		text[len] = ' ';
		len += model_below((uint32_t)(sizeof(text) - len));
	}
	outbox_put(r->outbox, p->channel, LINK_UP_TRIGGER, text, len, 0);
}

/* ---- the link's begin and end ---- */

static void
forget(struct relay *r, uint32_t cause)
{
	size_t i;

	r->linked = false;
	r->recovering = false;
	outbox_reset(r->outbox, cause);
	for (i = 0; i < r->n_producers; i++)
		r->producers[i].said = NULL;
	book_new_link(r->book);
}

static void
put_old_losses(struct relay *r)
{
	struct link_loss losses[LOSSES_MAX];
	uint8_t out[LINK_LOSS_MAX];
	size_t i, n;

	while ((n = outbox_take_old_losses(r->outbox, losses, LOSSES_MAX)) > 0)
		for (i = 0; i < n; i++)
			outbox_put(r->outbox, 0, LINK_UP_LOSS, out,
			    link_put_loss(out, &losses[i]), 0);
}

struct wire *
relay_wire(const struct relay *r)
{
	return r->wire;
}

bool
relay_is_open(const struct relay *r)
{
	return r->open;
}

void
relay_hang_up(struct relay *r)
{
	if (r->wire == NULL)
		return;
	r->wire->relay_hung_up = true;
	r->wire = NULL;
	r->open = false;
	link_compressor_free(r->zip);
	link_decompressor_free(r->unzip);
	r->zip = NULL;
	r->unzip = NULL;
}

void
relay_connect(struct relay *r, struct wire *w)
{
	struct wire_open o = { .level = r->plan.level };
	struct outbox_state *st = &r->opened_with;

	relay_hang_up(r);
	r->wire = w;
	outbox_state(r->outbox, st);
	memcpy(o.link_id, st->link_id, sizeof(o.link_id));
	memcpy(o.relay_id, st->relay_id, sizeof(o.relay_id));
	memcpy(o.collector_id, st->collector_id, sizeof(o.collector_id));
	o.knows_collector = st->resumable;
	o.last_sent = st->last_sent;
	o.last_acknowledged = st->last_acked;
	o.received = st->received;
	o.epoch = r->book->epoch + (st->resumable ? 1 : 0);
	pipe_put(&w->up, WIRE_OPEN, &o, sizeof(o), NULL, 0);
}

static void
set_credit(struct relay *r, const struct wire_opened *a)
{
	size_t i;

	outbox_set_window(r->outbox, a->window);
	for (i = 0; i < a->n_consumed; i++)
		MODEL_CHECK(outbox_consumed(r->outbox, a->consumed[i].channel,
		    a->consumed[i].bytes) == 0);
	MODEL_CHECK(outbox_consumed_in_all(r->outbox, a->consumed_in_all) ==
	    0);
}

static void
begin_anew(struct relay *r, const struct wire_opened *a)
{
	const struct outbox_state *st = &r->opened_with;
	size_t i;

	if (st->resumable)
		forget(r, a->why == WHY(COLLECTOR_RESTARTED) ?
		    LOSS(COLLECTOR_RESTARTED) : LOSS(GRACE));
	outbox_linked(r->outbox, st->link_id, a->collector_id);
	memset(&r->in, 0, sizeof(r->in));
	r->sent = r->sent_ever = 0;
	set_credit(r, a);
	r->linked = true;
	for (i = 0; i < r->n_producers; i++)
		announce(r, &r->producers[i]);
	put_old_losses(r);
}

static void
look_at_recovery(struct relay *r)
{
	if (!r->recovering)
		return;
	while (r->old_at < r->old_end &&
	    outbox_channel_is_empty(r->outbox, r->old_at))
		r->old_at++;
	if (r->old_at < r->old_end)
		return;
	r->recovering = false;
	outbox_put(r->outbox, 0, LINK_UP_CLOSE_BELOW, NULL, 0, r->old_end);
}

static void
resume(struct relay *r, const struct wire_opened *a)
{
	const struct outbox_state *st = &r->opened_with;

	MODEL_CHECK(st->resumable);
	MODEL_CHECK(a->received >= st->last_acked &&
	    a->received <= st->last_sent);
	MODEL_CHECK(outbox_resume(r->outbox, a->received) == 0);
	book_settle(r->book, a->received);
	r->in.received = r->in.told = st->received;
	r->sent = a->received;
	r->sent_ever = st->last_sent;
	set_credit(r, a);
	r->linked = true;
	look_at_recovery(r);
}

static void
take_opened(struct relay *r, const struct wire_opened *a)
{
	MODEL_CHECK(!r->open);
	r->open = true;
	if (a->level > 0) {
		MODEL_CHECK((r->zip = link_compressor_new(a->level)) != NULL);
		MODEL_CHECK((r->unzip = link_decompressor_new()) != NULL);
	}
	if (a->why == WHY(RESUMED))
		resume(r, a);
	else
		begin_anew(r, a);
}

/* ---- frames ---- */

static void
send_frame(struct relay *r, struct link_frame *f)
{
	uint8_t head[LINK_HEAD_MAX];
	size_t n;

	if (r->in.told != r->in.received || model_chance(10)) {
		f->has_received = true;
		f->received = r->in.told = r->in.received;
	}
	n = link_put_head(head, f);
	pipe_put(&r->wire->up, WIRE_FRAME, head, n, f->block, f->len);
}

static void
send_block(struct relay *r, const struct outbox_block *b)
{
	struct link_frame f = { .number = b->number, .channel = b->channel,
		.block = b->data, .len = b->len };

	MODEL_CHECK(b->number == r->sent + 1);
	MODEL_CHECK(b->len > 0 && b->len <= LINK_BLOCK_MAX);
	r->sent = b->number;
	if (b->number <= r->sent_ever) {
		r->sent_again++;
	} else {
		r->sent_ever = b->number;
		r->sent_new++;
		count_turns(r, b);
	}
	if (r->zip != NULL && model_chance(90)) {
		f.compressed = true;
		f.raw_size = b->len;
		MODEL_CHECK(link_compress(r->zip, b->data, b->len, &f.block,
		    &f.len) == 0);
	}
	send_frame(r, &f);
}

void
relay_send(struct relay *r, unsigned blocks)
{
	struct link_frame ack = { 0 };
	struct outbox_block b;

	if (!r->open)
		return;
	while (blocks-- > 0 && outbox_next(r->outbox, &b))
		send_block(r, &b);
	if (r->in.told != r->in.received)
		send_frame(r, &ack);
}

/* ---- commands of a real collector ---- */

static struct local_producer *
find_producer(struct relay *r, uint32_t channel)
{
	size_t i;

	for (i = 0; i < r->n_producers; i++)
		if (r->producers[i].channel == channel &&
		    r->producers[i].said != NULL)
			return &r->producers[i];
	return NULL;
}

static void
start_source(struct local_producer *p,
    const Perfetto__Protos__GetAsyncCommandResponse__StartDataSource *m)
{
	/* exactly once */
	MODEL_CHECK(p->instance == 0);
	MODEL_CHECK(m->new_instance_id != 0 && m->config != NULL);
	MODEL_CHECK(m->config->target_buffer != 0);
	p->instance = m->new_instance_id;
	p->said->buffer = m->config->target_buffer;
}

static void
answer_flush(struct relay *r, struct local_producer *p, uint64_t id)
{
	uint8_t *at = outbox_reserve(r->outbox, p->channel, 16, false);
	size_t n;

	if (at == NULL)
		return;
	n = pb_encode_varint(at + 1, id);
	at[0] = 3 << 3; /* flush_request_id */
	outbox_commit(r->outbox, p->channel, n + 1);
}

static void
take_command(struct relay *r, uint32_t channel, const struct pb_field *f)
{
	struct local_producer *p = find_producer(r, channel);
	Perfetto__Protos__GetAsyncCommandResponse *m;

	r->book->commands_arrived++;
	m = perfetto__protos__get_async_command_response__unpack(NULL, f->len,
	    f->data);
	MODEL_CHECK(m != NULL);
	if (p != NULL && m->cmd_case == COMMAND(START_DATA_SOURCE))
		start_source(p, m->start_data_source);
	if (p != NULL && m->cmd_case == COMMAND(FLUSH))
		answer_flush(r, p, m->flush->request_id);
	perfetto__protos__get_async_command_response__free_unpacked(m, NULL);
}

static void
take_block(struct relay *r, const struct link_frame *f)
{
	const uint8_t *data = f->block;
	size_t len = f->len;
	struct pb_reader reader;
	struct pb_field m;

	if (f->compressed) {
		MODEL_CHECK(r->unzip != NULL);
		len = f->raw_size;
		MODEL_CHECK(link_decompress(r->unzip, f->block, f->len, len,
		    &data) == 0);
	}
	switch (link_in_take(&r->in, f->number)) {
	case LINK_IN_AGAIN:
		return;
	case LINK_IN_GAP:
		model_fail(__FILE__, __LINE__, "a gap");
	case LINK_IN_NEW:
		break;
	}
	pb_init(&reader, data, len);
	while (pb_next(&reader, &m)) {
		if (m.number == LINK_DOWN_ORIGIN)
			continue;
		MODEL_CHECK(m.number == LINK_DOWN_COMMAND);
		if (r->book->real)
			take_command(r, f->channel, &m);
		else
			book_take_command(r->book, f->channel, m.data, m.len);
	}
	MODEL_CHECK(!reader.bad);
	outbox_set_received(r->outbox, r->in.received);
}

static void
take_frame(struct relay *r, const uint8_t *data, size_t len)
{
	struct link_frame f;
	uint32_t channel;
	uint64_t bytes;

	MODEL_CHECK(link_parse_frame(&f, data, len) == 0);
	if (f.has_received) {
		MODEL_CHECK(f.received <= r->sent);
		MODEL_CHECK(outbox_acked(r->outbox, f.received) == 0);
		book_settle(r->book, f.received);
	}
	while (link_next_consumed(&f, &channel, &bytes))
		MODEL_CHECK(outbox_consumed(r->outbox, channel, bytes) == 0);
	if (f.has_consumed_in_all)
		MODEL_CHECK(outbox_consumed_in_all(r->outbox,
		    f.consumed_in_all) == 0);
	if (f.number != 0)
		take_block(r, &f);
	look_at_recovery(r);
}

void
relay_receive(struct relay *r)
{
	struct wire *w = r->wire;
	struct wire_opened a;
	enum wire_kind kind;
	const uint8_t *data;
	size_t len;

	while (r->wire == w && w != NULL &&
	    pipe_next(&w->down, &kind, &data, &len)) {
		if (kind == WIRE_OPENED) {
			MODEL_CHECK(len == sizeof(a));
			memcpy(&a, data, len);
			take_opened(r, &a);
		} else {
			take_frame(r, data, len);
		}
		pipe_took(&w->down);
	}
	if (w != NULL && r->wire == w && w->collector_hung_up &&
	    pipe_on_the_way(&w->down) == 0)
		relay_hang_up(r);
	loop_run_once(r->loop);
	/* What the spool had of it is counted later. */
	if (r->linked)
		put_old_losses(r);
	if (r->overflow) {
		r->overflow = false;
		if (!r->linked)
			return;
		forget(r, LOSS(SPOOL_FULL));
		relay_hang_up(r);
	}
}

/* ---- its process ---- */

/* As producers_recover(): what stood in shared memory, then the end. */
static void
recover_producers(struct relay *r)
{
	struct local_producer *p;
	unsigned n;

	while (r->n_producers > 0) {
		p = &r->producers[--r->n_producers];
		if (p->said == NULL)
			continue;
		for (n = model_below(4); n > 0 && p->said->buffer != 0; n--)
			say_chunk(r, p);
		close_channel(r, p);
	}
}

void
relay_kill(struct relay *r)
{
	struct outbox_state before, st;
	unsigned life = r->life;

	relay_hang_up(r);
	outbox_state(r->outbox, &before);
	r->overflow = false;
	copy_folder(folder(r, life, "state"), folder(r, life + 1, "state"));
	copy_folder(folder(r, life, "spool"), folder(r, life + 1, "spool"));
	close_outbox(r);
	r->life++;
	open_outbox(r);
	outbox_state(r->outbox, &st);
	MODEL_CHECK(memcmp(st.link_id, before.link_id, LINK_ID_BYTES) == 0);
	MODEL_CHECK(st.resumable == r->linked);
	r->linked = st.resumable;
	r->recovering = false;
	if (st.resumable && st.last_channel > 0) {
		r->recovering = true;
		r->old_at = 1;
		r->old_end = st.last_channel + 1;
		recover_producers(r);
	}
	r->n_producers = 0;
}

bool
relay_is_empty(const struct relay *r)
{
	struct outbox_stats stats;

	outbox_stats(r->outbox, &stats);
	return r->linked && stats.memory_bytes == 0 &&
	    stats.spool_bytes == 0 && stats.blocks_on_the_way == 0 &&
	    r->in.told == r->in.received;
}

uint64_t
relay_sent_new(const struct relay *r)
{
	return r->sent_new;
}

uint64_t
relay_sent_again(const struct relay *r)
{
	return r->sent_again;
}
