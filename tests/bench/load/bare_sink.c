#include "tests/bench/load/bare_sink.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protos/json_out.h"
#include "tests/bench/load/process_sample.h"
#include "transport/connect/listener.h"
#include "transport/loop/loop.h"
#include "transport/process/fd_limit.h"
#include "transport/stream/stream.h"
#include "transport/tls/tls.h"
#include "transport/wire/frame.h"
#include "transport/wire/ipc_frame.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

/* Method ids that it offers. */
enum { M_INIT = 1, M_COMMANDS, M_SOURCE, M_COMMIT, M_OTHER };

struct sink {
	struct loop *loop;
	struct listener *listener;
	struct tls_context *tls; /* NULL: plain */
	uint64_t connections, frames, bytes, commits;
};

struct sink_conn {
	struct sink *sink;
	struct stream *stream;
	uint64_t commands; /* request */
};

static void
put_method(struct pb_writer *w, uint32_t id, const char *name)
{
	size_t mark = pb_nest_begin(w, 3);

	pb_put_uint(w, 1, id);
	pb_put_string(w, 2, name);
	pb_nest_end(w, mark);
}

static void
answer_bind(struct sink_conn *c, uint64_t request)
{
	static const char *const others[] = { "RegisterTraceWriter",
		"UnregisterTraceWriter", "NotifyDataSourceStarted",
		"NotifyDataSourceStopped", "Sync" };
	struct pb_writer w;
	size_t mark, i;

	pb_writer_init(&w);
	mark = ipc_frame_begin(&w, request, IPC_BIND_SERVICE_REPLY);
	pb_put_uint(&w, 1, 1);
	pb_put_uint(&w, 2, 1);
	put_method(&w, M_INIT, "InitializeConnection");
	put_method(&w, M_COMMANDS, "GetAsyncCommand");
	put_method(&w, M_SOURCE, "RegisterDataSource");
	put_method(&w, M_COMMIT, "CommitData");
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		put_method(&w, M_OTHER + (uint32_t)i, others[i]);
	ipc_frame_end(&w, mark);
	stream_write(c->stream, w.data, w.len, -1);
	pb_writer_done(&w);
}

static void
reply(struct sink_conn *c, uint64_t request, bool more,
    const struct pb_writer *w)
{
	uint8_t head[IPC_HEAD_MAX];
	size_t len = w != NULL ? w->len : 0, n;

	n = ipc_put_reply_head(head, request, true, more, len);
	stream_write2(c->stream, head, n, w != NULL ? w->data : NULL, len, -1);
}

/* One instance, which writes from now on. */
static void
start_writing(struct sink_conn *c)
{
	struct pb_writer w;
	size_t mark, config;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w, 6);
	pb_put_uint(&w, 1, 1);
	config = pb_nest_begin(&w, 2);
	pb_put_uint(&w, 2, 1);
	pb_nest_end(&w, config);
	pb_nest_end(&w, mark);
	reply(c, c->commands, true, &w);
	pb_writer_reset(&w);
	mark = pb_nest_begin(&w, 1);
	pb_put_uint(&w, 1, 1);
	pb_nest_end(&w, mark);
	reply(c, c->commands, true, &w);
	pb_writer_done(&w);
}

static void
take_frame(struct sink_conn *c, const uint8_t *data, size_t len)
{
	struct ipc_invoke m;
	struct ipc_frame f;

	c->sink->frames++;
	if (ipc_parse_frame(&f, data, len) != 0)
		return;
	if (f.kind == IPC_BIND_SERVICE)
		answer_bind(c, f.request_id);
	if (f.kind != IPC_INVOKE_METHOD || ipc_parse_invoke(&m, f.body) != 0)
		return;
	if (m.method_id == M_COMMANDS) {
		c->commands = f.request_id;
		return;
	}
	c->sink->commits += m.method_id == M_COMMIT;
	if (!m.drop_reply)
		reply(c, f.request_id, false, NULL);
	if (m.method_id == M_SOURCE)
		start_writing(c);
}

static size_t
data_cb(struct stream *s, const uint8_t *buf, size_t len, void *arg)
{
	struct sink_conn *c = arg;
	const uint8_t *payload;
	size_t at, n, used, need;

	for (at = 0; at < len; at += used) {
		switch (frame_next(buf + at, len - at, &payload, &n, &used,
		    &need)) {
		case FRAME_OK:
			break;
		case FRAME_MORE:
			stream_want(s, need);
			return at;
		case FRAME_TOO_BIG:
			stream_close(s, false);
			free(c);
			return len;
		}
		c->sink->bytes += used;
		take_frame(c, payload, n);
	}
	return at;
}

static void
closed_cb(struct stream *s, enum stream_end why, void *arg)
{
	free(arg);
}

static void
accept_cb(struct listener *l, int fd, void *arg)
{
	static const struct stream_ops ops = { .data = data_cb,
		.closed = closed_cb };
	struct sink *s = arg;
	struct sink_conn *c = calloc(1, sizeof(*c));
	struct stream_setup setup = { .tls = NULL };

	if (s->tls != NULL)
		setup.tls = tls_conn_new(s->tls, fd, NULL, "device");
	if (c != NULL && (s->tls == NULL || setup.tls != NULL))
		c->stream = stream_new_over(s->loop, fd, &setup, &ops, c);
	if (c == NULL || c->stream == NULL) {
		tls_conn_free(setup.tls);
		close(fd);
		free(c);
		return;
	}
	c->sink = s;
	s->connections++;
}

static void
stop_cb(void *arg)
{
	struct sink *s = arg;

	loop_stop(s->loop);
}

static void
print(const struct sink *s)
{
	struct process_sample p = { 0 };
	struct json_out j = { .out = stdout };

	(void)!process_sample_take(&p, getpid());
	json_object(&j, NULL);
	json_uint(&j, "connections", s->connections);
	json_uint(&j, "frames", s->frames);
	json_uint(&j, "commits", s->commits);
	json_uint(&j, "bytes", s->bytes);
	json_number(&j, "user_s", p.user);
	json_number(&j, "system_s", p.system);
	json_uint(&j, "rss_kb", p.rss_kb);
	json_uint(&j, "rss_peak_kb", p.peak_kb);
	json_object_end(&j);
	putchar('\n');
}

static int
serve(struct sink *s, const char *listen, const char *tls_dir, char *err,
    size_t err_size)
{
	struct tls_options o = { .side = TLS_SERVER, .dir = tls_dir };
	struct addr a;

	if (addr_parse(&a, listen, err, err_size) != 0)
		return -1;
	if (a.kind == ADDR_TLS &&
	    (s->tls = tls_context_new(&o, err, err_size)) == NULL)
		return -1;
	s->listener = listener_new(s->loop,
	    &(struct listener_setup){ .addr = &a, .fn = accept_cb, .arg = s },
	    err, err_size);
	if (s->listener == NULL)
		return -1;
	if (loop_on_signal(s->loop, SIGTERM, stop_cb, s) != 0 ||
	    loop_on_signal(s->loop, SIGINT, stop_cb, s) != 0)
		return -1;
	fprintf(stderr, "listening on %s, port %d\n", listen,
	    listener_port(s->listener));
	loop_run(s->loop);
	print(s);
	return 0;
}

int
bare_sink_main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "listen", required_argument, NULL, 'l' },
		{ "tls-dir", required_argument, NULL, 't' },
		{ NULL, 0, NULL, 0 },
	};
	const char *listen = NULL, *tls_dir = NULL;
	struct sink s = { .loop = NULL };
	char err[1024] = "out of memory";
	int opt, rc = 1;

	while ((opt = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (opt == 'l')
			listen = optarg;
		else if (opt == 't')
			tls_dir = optarg;
		else
			listen = NULL;
	}
	if (listen == NULL || optind < argc) {
		fputs("usage: tributary-load sink --listen ADDRESS "
		    "[--tls-dir DIR]\n"
		    "\n"
		    "Reads what devices send and throws it away, until "
		    "SIGTERM; then says how much\nit was and what it cost.\n", stderr);
		return 2;
	}
	fd_limit_raise();
	if ((s.loop = loop_new()) != NULL)
		rc = serve(&s, listen, tls_dir, err, sizeof(err)) != 0;
	if (rc != 0)
		fprintf(stderr, "tributary-load sink: %s\n", err);
	listener_free(s.listener);
	loop_free(s.loop);
	tls_context_free(s.tls);
	return rc;
}
