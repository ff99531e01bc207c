#include "tests/bench/tracing/events_session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <tributary/tributary.h>
#include <unistd.h>

#include "protos/fields.h"
#include "tests/bench/tracing/events.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

#define RING_KB 65536u
/* 8 threads fill no more than this between two flushes. */
#define MEMORY (1024u * 1024u)
#define WAIT_MS 10000

static bool
answers(const struct events_session *s, char name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ok;

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/%c", s->folder, name);
	ok = fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
	if (fd >= 0)
		close(fd);
	return ok;
}

static void
exec_traced(const struct events_session *s, const char *program)
{
	int fd = open("/dev/null", O_RDWR);

	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	setenv("PERFETTO_PRODUCER_SOCK_NAME", s->producers, 1);
	setenv("PERFETTO_CONSUMER_SOCK_NAME", s->consumers, 1);
	execl(program, program, "traced", (char *)NULL);
	_exit(127);
}

static void
start_traced(struct events_session *s, const char *program)
{
	int ms;

	snprintf(s->folder, sizeof(s->folder), "/tmp/trib-bench-XXXXXX");
	if (mkdtemp(s->folder) == NULL)
		load_die("%s: %s", s->folder, strerror(errno));
	snprintf(s->producers, sizeof(s->producers), "%s/p", s->folder);
	snprintf(s->consumers, sizeof(s->consumers), "%s/c", s->folder);
	if ((s->traced = fork()) == 0)
		exec_traced(s, program);
	for (ms = 0; !answers(s, 'c') || !answers(s, 'p'); ms++) {
		if (ms == WAIT_MS)
			load_die("%s traced did not become ready", program);
		usleep(1000);
	}
}

static void
enable(struct events_session *s)
{
	struct pb_writer w;
	size_t config, item, inner;

	pb_writer_init(&w);
	config = pb_nest_begin(&w, EnableTracingRequest_trace_config);
	item = pb_nest_begin(&w, TraceConfig_buffers);
	pb_put_uint(&w, BufferConfig_size_kb, RING_KB);
	pb_nest_end(&w, item);
	item = pb_nest_begin(&w, TraceConfig_data_sources);
	inner = pb_nest_begin(&w, TraceConfig_DataSource_config);
	pb_put_string(&w, DataSourceConfig_name, "track_event");
	pb_nest_end(&w, inner);
	pb_nest_end(&w, item);
	pb_nest_end(&w, config);
	load_conn_open(&s->consumer, s->consumers, "ConsumerPort");
	load_conn_call(&s->consumer, "EnableTracing", w.data, w.len, false, -1);
	pb_writer_done(&w);
}

static void
connect_library(const struct events_session *s)
{
	struct tributary_options o = TRIBUTARY_OPTIONS;
	int ms;

	o.address = s->producers;
	o.memory_bytes = MEMORY;
	if (tributary_start(&o) != 0)
		load_die("tributary_start() failed");
	for (ms = 0; !events_enabled(); ms++) {
		if (ms == WAIT_MS)
			load_die("%s enabled no event", s->name);
		usleep(1000);
	}
}

void
events_session_open(struct events_session *s, const char *program,
    bool is_traced)
{
	memset(s, 0, sizeof(*s));
	s->name = is_traced ? "traced" : "tributaryd";
	if (is_traced) {
		start_traced(s, program);
	} else {
		process_daemon_start(&s->ours, program, NULL);
		snprintf(s->producers, sizeof(s->producers), "%s",
		    s->ours.producers_unix);
		snprintf(s->consumers, sizeof(s->consumers), "%s",
		    s->ours.consumers);
	}
	enable(s);
	connect_library(s);
}

static uint64_t
stored(const uint8_t *data, size_t len)
{
	struct pb_reader r;
	struct pb_field f;
	uint64_t bytes = 0;

	pb_init(&r, data, len);
	while (pb_next(&r, &f))
		if (f.number == BufferStats_bytes_written)
			bytes += f.value;
	return bytes;
}

uint64_t
events_session_bytes(struct events_session *s)
{
	struct load_reply reply;
	struct pb_reader r, stats;
	struct pb_field f, g;
	uint64_t id, bytes = 0;

	id = load_conn_call(&s->consumer, "GetTraceStats", NULL, 0, false, -1);
	load_conn_wait(&s->consumer, id, NULL, NULL, &reply);
	pb_init(&r, reply.msg, reply.len);
	while (pb_next(&r, &f)) {
		if (f.number != GetTraceStatsResponse_trace_stats)
			continue;
		pb_init(&stats, f.data, f.len);
		while (pb_next(&stats, &g))
			if (g.number == TraceStats_buffer_stats)
				bytes += stored(g.data, g.len);
	}
	return bytes;
}

void
events_session_close(struct events_session *s)
{
	char path[PROCESS_ADDRESS_MAX + 1];

	tributary_stop(0);
	load_conn_close(&s->consumer);
	if (s->traced == 0) {
		process_daemon_stop(&s->ours);
		return;
	}
	kill(s->traced, SIGTERM);
	waitpid(s->traced, NULL, 0);
	snprintf(path, sizeof(path), "%s/p", s->folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/c", s->folder);
	unlink(path);
	rmdir(s->folder);
}
