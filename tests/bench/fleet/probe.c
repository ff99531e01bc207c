#include "tests/bench/fleet/probe.h"

#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/load/load_conn.h"
#include "transport/wire/pb_writer.h"

#define WAITS_MAX 65536u

static int
compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
ask(struct load_conn *c, size_t turn)
{
	uint64_t began = load_now_ns(), id;
	struct load_reply reply;
	struct pb_writer w;

	pb_writer_init(&w);
	if (turn % 2 == 0) {
		pb_put_uint(&w, 1, 1); /* sessions_only */
		id = load_conn_call(c, "QueryServiceState", w.data, w.len,
		    false, -1);
	} else {
		id = load_conn_call(c, "QueryCapabilities", NULL, 0, false,
		    -1);
	}
	pb_writer_done(&w);
	load_conn_wait(c, id, NULL, NULL, &reply);
	while (reply.has_more)
		load_conn_receive(c, &reply);
	return (double)(load_now_ns() - began) / 1e6;
}

static void
run(const char *consumers, unsigned every_ms, int stop, int result)
{
	static double waits[WAITS_MAX];
	struct pollfd pfd = { stop, POLLIN, 0 };
	struct probe_result r = { 0 };
	static const struct sched_param before_others = {
		.sched_priority = 10 };
	struct load_conn c;
	size_t n = 0;

	/* It measures the daemon, not its own turn on a busy processor. */
	(void)setpriority(PRIO_PROCESS, 0, -20);
	if (sched_getscheduler(0) == SCHED_RR)
		(void)sched_setscheduler(0, SCHED_RR, &before_others);
	load_conn_open(&c, consumers, "ConsumerPort");
	while (n < WAITS_MAX && poll(&pfd, 1, (int)every_ms) == 0) {
		waits[n] = ask(&c, n);
		n++;
	}
	if (n > 0) {
		qsort(waits, n, sizeof(waits[0]), compare_doubles);
		r.p50_ms = waits[n / 2];
		r.p99_ms = waits[n * 99 / 100];
		r.max_ms = waits[n - 1];
	}
	r.asked = n;
	_exit(write(result, &r, sizeof(r)) != sizeof(r));
}

void
probe_start(struct probe *p, const char *consumers, unsigned every_ms)
{
	int stop[2], result[2];

	if (pipe(stop) != 0 || pipe(result) != 0 || (p->pid = fork()) < 0)
		load_die("no process for the probe");
	if (p->pid == 0) {
		close(stop[1]);
		close(result[0]);
		run(consumers, every_ms, stop[0], result[1]);
	}
	close(stop[0]);
	close(result[1]);
	p->stop = stop[1];
	p->result = result[0];
}

void
probe_stop(struct probe *p, struct probe_result *out)
{
	close(p->stop);
	if (read(p->result, out, sizeof(*out)) != sizeof(*out))
		load_die("the probe died");
	close(p->result);
	waitpid(p->pid, NULL, 0);
}
