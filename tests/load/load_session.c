#include "tests/load/load_session.h"

#include <stdio.h>
#include <string.h>

#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

static void
put_config(struct pb_writer *w, const char *source, uint32_t buffer_kb,
    bool into_file)
{
	size_t config, item, inner;

	config = pb_nest_begin(w, 1);
	item = pb_nest_begin(w, 1); /* buffers */
	pb_put_uint(w, 1, buffer_kb);
	pb_nest_end(w, item);
	item = pb_nest_begin(w, 2); /* data_sources */
	inner = pb_nest_begin(w, 1);
	pb_put_string(w, 1, source);
	pb_nest_end(w, inner);
	pb_nest_end(w, item);
	if (into_file) {
		pb_put_uint(w, 8, 1);
		pb_put_uint(w, 44, 2); /* WRITE_FLUSH_DISABLED */
	}
	pb_put_uint(w, 43, 1); /* trace_all_machines */
	pb_nest_end(w, config);
}

void
load_session_open(struct load_session *s, const char *address,
    const char *source, uint32_t buffer_kb, int file_fd)
{
	struct pb_writer w;

	memset(s, 0, sizeof(*s));
	load_conn_open(&s->conn, address, "ConsumerPort");
	pb_writer_init(&w);
	put_config(&w, source, buffer_kb, file_fd >= 0);
	s->enable = load_conn_call(&s->conn, "EnableTracing", w.data, w.len,
	    false, file_fd);
	pb_writer_done(&w);
}

static void
enable_ended(struct load_session *s, const struct load_reply *r)
{
	struct pb_reader reader;
	struct pb_field f;

	if (!r->success)
		load_die("EnableTracing was rejected");
	s->ended = true;
	pb_init(&reader, r->msg, r->len);
	while (pb_next(&reader, &f))
		if (f.number == 3)
			snprintf(s->error, sizeof(s->error), "%.*s",
			    (int)f.len, (const char *)f.data);
}

static void
other_reply(void *arg, const struct load_reply *r)
{
	struct load_session *s = arg;

	if (r->request_id == s->enable)
		enable_ended(s, r);
}

static void
add_buffer(struct load_stats *out, const uint8_t *data, size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, data, len);
	while (pb_next(&r, &f)) {
		switch (f.number) {
		case 1:
			out->bytes_written += f.value;
			break;
		case 2:
			out->chunks_written += f.value;
			break;
		case 3:
			out->chunks_overwritten += f.value;
			break;
		case 9:  /* abi_violations */
		case 18: /* chunks_discarded */
			out->chunks_lost += f.value;
			break;
		}
	}
}

void
load_session_stats(struct load_session *s, struct load_stats *out)
{
	struct load_reply reply;
	struct pb_reader r, stats;
	struct pb_field f, g;
	uint64_t id;

	memset(out, 0, sizeof(*out));
	id = load_conn_call(&s->conn, "GetTraceStats", NULL, 0, false, -1);
	load_conn_wait(&s->conn, id, other_reply, s, &reply);
	pb_init(&r, reply.msg, reply.len);
	while (pb_next(&r, &f)) {
		if (f.number != 1)
			continue;
		pb_init(&stats, f.data, f.len);
		while (pb_next(&stats, &g)) {
			if (g.number == 1)
				add_buffer(out, g.data, g.len);
			else if (g.number == 8) /* chunks_discarded */
				out->chunks_lost += g.value;
		}
	}
}

void
load_session_request_stop(struct load_session *s)
{
	load_conn_call(&s->conn, "DisableTracing", NULL, 0, true, -1);
}

void
load_session_wait_ended(struct load_session *s)
{
	struct load_reply reply;

	while (!s->ended) {
		load_conn_receive(&s->conn, &reply);
		other_reply(s, &reply);
	}
}

void
load_session_close(struct load_session *s)
{
	load_conn_close(&s->conn);
}
