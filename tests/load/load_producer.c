#include "tests/load/load_producer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "transport/shm/shm.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define PAGE 4096u

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
call_with_id(struct load_producer *p, const char *method, uint64_t id)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, 1, id);
	load_conn_call(&p->conn, method, w.data, w.len, true, -1);
	pb_writer_done(&w);
}

static struct load_instance *
find_instance(struct load_producer *p, uint64_t id)
{
	size_t i;

	for (i = 0; i < p->n_instances; i++)
		if (p->instances[i].id == id)
			return &p->instances[i];
	load_die("the daemon speaks of an instance it never set up");
}

static void
setup_tracing(struct load_producer *p)
{
	char err[256];
	int fd = load_conn_take_fd(&p->conn);

	if (fd < 0)
		return;
	p->shm = shm_adopt(fd, PAGE, err, sizeof(err));
	if (p->shm == NULL)
		load_die("cannot map the shared memory: %s", err);
}

static void
setup_instance(struct load_producer *p, const uint8_t *data, size_t len)
{
	struct load_instance *in = &p->instances[p->n_instances];
	struct pb_reader r;
	struct pb_field f;

	if (p->n_instances == LOAD_INSTANCES)
		load_die("more than %d instances", LOAD_INSTANCES);
	memset(in, 0, sizeof(*in));
	pb_init(&r, data, len);
	while (pb_next(&r, &f)) {
		if (f.number == 1)
			in->id = f.value;
		else if (f.number == 2)
			in->buffer = (uint32_t)field_value(f.data, f.len, 2);
	}
	p->n_instances++;
}

static void
command(struct load_producer *p, const struct pb_field *f)
{
	struct load_instance *in;
	struct pb_writer w;

	switch (f->number) {
	case 3: /* SetupTracing */
		setup_tracing(p);
		break;
	case 6: /* SetupDataSource */
		setup_instance(p, f->data, f->len);
		break;
	case 1: /* StartDataSource */
		in = find_instance(p, field_value(f->data, f->len, 1));
		in->started = true;
		p->n_started++;
		call_with_id(p, "NotifyDataSourceStarted", in->id);
		break;
	case 2: /* StopDataSource */
		in = find_instance(p, field_value(f->data, f->len, 1));
		in->stopped = true;
		p->n_stopped++;
		p->ended = p->n_stopped == p->n_instances;
		call_with_id(p, "NotifyDataSourceStopped", in->id);
		break;
	case 5: /* Flush */
		pb_writer_init(&w);
		pb_put_uint(&w, 3, field_value(f->data, f->len, 2));
		load_conn_call(&p->conn, "CommitData", w.data, w.len, true, -1);
		pb_writer_done(&w);
		break;
	}
}

void
load_producer_handle(struct load_producer *p, const struct load_reply *r)
{
	struct pb_reader reader;
	struct pb_field f;

	if (!r->success)
		load_die("call %llu was rejected",
		    (unsigned long long)r->request_id);
	if (r->request_id != p->commands)
		return;
	pb_init(&reader, r->msg, r->len);
	while (pb_next(&reader, &f))
		command(p, &f);
}

static void
handle_cb(void *arg, const struct load_reply *r)
{
	load_producer_handle(arg, r);
}

static void
call_and_wait(struct load_producer *p, const char *method,
    const struct pb_writer *w)
{
	struct load_reply reply;
	uint64_t id;

	id = load_conn_call(&p->conn, method, w->data, w->len, false, -1);
	load_conn_wait(&p->conn, id, handle_cb, p, &reply);
}

void
load_producer_open(struct load_producer *p, const char *address,
    const char *name, const char *source, uint32_t shm_size)
{
	struct pb_writer w;
	size_t mark;

	memset(p, 0, sizeof(*p));
	load_conn_open(&p->conn, address, "ProducerPort");

	pb_writer_init(&w);
	pb_put_uint(&w, 1, PAGE);
	if (shm_size > 0)
		pb_put_uint(&w, 2, shm_size);
	pb_put_string(&w, 3, name);
	call_and_wait(p, "InitializeConnection", &w);

	p->commands = load_conn_call(&p->conn, "GetAsyncCommand", NULL, 0,
	    false, -1);

	pb_writer_reset(&w);
	mark = pb_nest_begin(&w, 1);
	pb_put_string(&w, 1, source);
	pb_put_uint(&w, 2, 1); /* will_notify_on_stop */
	pb_put_uint(&w, 3, 1); /* will_notify_on_start */
	pb_nest_end(&w, mark);
	call_and_wait(p, "RegisterDataSource", &w);
	pb_writer_done(&w);
}

void
load_producer_close(struct load_producer *p)
{
	load_conn_close(&p->conn);
	shm_free(p->shm);
}

/* Served together: a flush ends only when all have answered. */
static void
serve_until(struct load_producer *ps, size_t n,
    bool (*done)(const struct load_producer *, size_t), size_t arg)
{
	struct pollfd *fds;
	struct load_reply reply;
	size_t i, n_done;

	if ((fds = calloc(n, sizeof(*fds))) == NULL)
		load_die("no memory");
	for (;;) {
		n_done = 0;
		for (i = 0; i < n; i++) {
			while (!done(&ps[i], arg) &&
			    load_conn_try_receive(&ps[i].conn, &reply))
				load_producer_handle(&ps[i], &reply);
			n_done += done(&ps[i], arg);
			fds[i].fd = done(&ps[i], arg) ? -1 : ps[i].conn.fd;
			fds[i].events = POLLIN;
		}
		if (n_done == n)
			break;
		if (poll(fds, n, -1) < 0 && errno != EINTR)
			load_die("poll: %s", strerror(errno));
	}
	free(fds);
}

static bool
has_started(const struct load_producer *p, size_t count)
{
	return p->n_started >= count;
}

static bool
has_stopped(const struct load_producer *p, size_t unused)
{
	(void)unused;
	return p->ended;
}

void
load_producers_wait_started(struct load_producer *ps, size_t n, size_t count)
{
	serve_until(ps, n, has_started, count);
}

void
load_producers_wait_stopped(struct load_producer *ps, size_t n)
{
	serve_until(ps, n, has_stopped, 0);
}

static void
commit(struct load_producer *p, const struct pb_writer *w, bool ask)
{
	struct load_reply reply;
	uint64_t id;

	id = load_conn_call(&p->conn, "CommitData", w->data, w->len, !ask, -1);
	if (ask)
		load_conn_wait(&p->conn, id, handle_cb, p, &reply);
}

static void
chunk_by_memory(struct load_producer *p, struct pb_writer *w, uint16_t writer,
    uint32_t chunk_id, uint16_t fragments, uint8_t flags,
    const uint8_t *payload, size_t len)
{
	struct shm_slot slot;
	uint16_t i;

	/* Full: the daemon frees chunks as it takes commits. */
	while (!shm_acquire(p->shm, SHM_DIV1, writer, chunk_id, flags, &slot))
		load_producer_sync(p);
	if (len > slot.len)
		load_die("a chunk of %zu bytes for %zu", len, slot.len);
	memcpy(slot.payload, payload, len);
	for (i = 0; i < fragments; i++)
		shm_add_fragment(p->shm, &slot);
	shm_complete(p->shm, &slot);
	pb_put_uint(w, 1, slot.page);
	pb_put_uint(w, 2, slot.index);
}

static void
put_chunk_data(struct pb_writer *w, uint16_t writer, uint32_t chunk_id,
    uint16_t fragments, uint8_t flags, const uint8_t *payload, size_t len)
{
	uint8_t chunk[SHM_PAGE_MAX];
	uint16_t packed = (uint16_t)(fragments | flags << 10);

	if (len > sizeof(chunk) - SHM_CHUNK_HEADER_BYTES)
		load_die("a chunk of %zu bytes", len);
	memcpy(chunk, &chunk_id, 4);
	memcpy(chunk + 4, &writer, 2);
	memcpy(chunk + 6, &packed, 2);
	memcpy(chunk + SHM_CHUNK_HEADER_BYTES, payload, len);
	pb_put_uint(w, 1, 0);
	pb_put_uint(w, 2, 0);
	pb_put_bytes(w, 4, chunk, SHM_CHUNK_HEADER_BYTES + len);
}

void
load_producer_chunk(struct load_producer *p, uint32_t buffer, uint16_t writer,
    uint32_t chunk_id, uint16_t fragments, uint8_t flags,
    const uint8_t *payload, size_t len)
{
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w, 1);
	if (p->shm != NULL)
		chunk_by_memory(p, &w, writer, chunk_id, fragments, flags,
		    payload, len);
	else
		put_chunk_data(&w, writer, chunk_id, fragments, flags, payload,
		    len);
	pb_put_uint(&w, 3, buffer);
	pb_nest_end(&w, mark);
	commit(p, &w, false);
	pb_writer_done(&w);
}

void
load_producer_sync(struct load_producer *p)
{
	struct pb_writer w;

	pb_writer_init(&w);
	commit(p, &w, true);
	pb_writer_done(&w);
}
