#include "tests/bench/load/run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/bench/ingest/process.h"
#include "tests/bench/load/fleet.h"
#include "tests/bench/load/hostile.h"
#include "tests/bench/load/load_ledger.h"
#include "tests/bench/load/load_options.h"
#include "tests/bench/load/load_report.h"
#include "tests/bench/load/place.h"
#include "tests/bench/load/recording.h"
#include "tests/load/load_ca.h"
#include "transport/loop/loop.h"
#include "transport/process/fd_limit.h"

#define TICK_MS 20u
/* While nothing is about to change, all devices are looked at less often. */
#define LOOK_MS 100u
/* Who has not come by then does not come. */
#define NOBODY_COMES_MS 15000u
#define CALM_MS         3000u
#define SETTLE_MS       30000u
#define STOP_MS         60000u

enum run_phase {
	RUN_CONNECTING,
	RUN_IDLE,
	RUN_STARTING, /* the session's data sources */
	RUN_LOAD,
	RUN_CALMING,  /* no churn any more; who is gone comes back */
	RUN_SETTLING, /* nobody writes; replies are awaited */
	RUN_STOPPING, /* the session */
};

struct run {
	struct load_options *options;
	struct loop *loop;
	struct place places[LOAD_PLACES_MAX];
	size_t n_places;
	struct load_ledger *ledger;
	struct load_totals totals;
	struct fleet *fleet;
	struct hostile *hostile;
	struct recording *recording; /* NULL: none */
	struct loop_timer *tick;
	enum run_phase phase;
	uint64_t began_ms, phase_ms, said_ms, looked_ms, load_ms;
	size_t ready;          /* when one came last */
	uint64_t ready_ms;
	bool asked_to_end;
	struct load_report report;

	struct process_daemon daemon;
	bool has_daemon;
	char ca[64]; /* folder of certificates, "": none */
	char device_dir[96], collector_dir[96];
};

static void
watch(struct load_watch *w, struct process_sample *s, pid_t pid)
{
	if (pid == 0 || process_sample_take(s, pid) != 0)
		return;
	w->known = true;
	if (s->threads > w->peak_threads)
		w->peak_threads = s->threads;
	if (s->descriptors > w->peak_descriptors)
		w->peak_descriptors = s->descriptors;
}

#define WATCH(r, point)                                                       \
	do {                                                                  \
		watch(&(r)->report.self, &(r)->report.self.point, getpid());  \
		watch(&(r)->report.collector, &(r)->report.collector.point,   \
		    (r)->options->pid);                                       \
	} while (0)

static double
seconds_since(uint64_t ms)
{
	return (double)(loop_now_ms() - ms) / 1000;
}

static void
enter(struct run *r, enum run_phase phase)
{
	r->phase = phase;
	r->phase_ms = loop_now_ms();
}

static void
begin_load(struct run *r)
{
	fleet_churn(r->fleet);
	hostile_start(r->hostile);
	r->load_ms = loop_now_ms();
	enter(r, RUN_LOAD);
}

static void
begin_session(struct run *r)
{
	WATCH(r, idle);
	if (r->options->session == NULL) {
		begin_load(r);
		return;
	}
	recording_start(r->recording);
	enter(r, RUN_STARTING);
}

static void
end_load(struct run *r)
{
	r->report.load_s = r->load_ms > 0 ? seconds_since(r->load_ms) : 0;
	WATCH(r, load);
	fleet_calm(r->fleet);
	enter(r, RUN_CALMING);
}

static void
settle(struct run *r)
{
	fleet_finish(r->fleet);
	enter(r, RUN_SETTLING);
}

static bool
has_session(const struct run *r)
{
	return r->options->session != NULL && r->phase >= RUN_STARTING;
}

/* All came, or nobody comes any more. */
static bool
all_came(struct run *r, const struct fleet_state *s)
{
	if (s->ready != r->ready) {
		r->ready = s->ready;
		r->ready_ms = loop_now_ms();
	}
	if (r->options->session != NULL &&
	    !recording_is_connected(r->recording))
		return recording_has_ended(r->recording);
	return s->ready == s->devices ||
	    loop_now_ms() - r->ready_ms > NOBODY_COMES_MS;
}

static bool
load_is_over(const struct run *r, const struct fleet_state *s)
{
	const struct load_options *o = r->options;

	if (o->duration_ms > 0 &&
	    loop_now_ms() - r->load_ms >= o->duration_ms)
		return true;
	if (has_session(r) && recording_has_ended(r->recording))
		return true;
	return o->packets > 0 && !o->stay && o->churn == 0 && s->ready > 0 &&
	    s->finished >= s->ready;
}

static void
say(struct run *r, const struct fleet_state *s)
{
	static const char *const phases[] = { "connecting", "idle",
		"starting", "load", "calming", "settling", "stopping" };

	if (r->options->quiet || loop_now_ms() - r->said_ms < 1000)
		return;
	r->said_ms = loop_now_ms();
	fprintf(stderr, "%6.1f s %s: %zu ready, %zu writing, %llu packets, "
	    "%.1f MB, round trip p99 %llu us\n", seconds_since(r->began_ms),
	    phases[r->phase], s->ready, s->writing,
	    (unsigned long long)r->totals.packets,
	    (double)r->totals.bytes / 1e6,
	    (unsigned long long)histogram_at(&r->totals.round_trip_us, 990));
}

static void
settled(struct run *r)
{
	hostile_stop(r->hostile);
	if (!has_session(r) || recording_has_ended(r->recording)) {
		loop_stop(r->loop);
		return;
	}
	recording_stop(r->recording);
	enter(r, RUN_STOPPING);
}

static void
step(struct run *r, const struct fleet_state *s)
{
	uint64_t in_phase = loop_now_ms() - r->phase_ms;

	if (r->asked_to_end && r->phase < RUN_CALMING) {
		end_load(r);
		return;
	}
	switch (r->phase) {
	case RUN_CONNECTING:
		if (!all_came(r, s))
			return;
		r->report.connect_s = seconds_since(r->began_ms);
		WATCH(r, connected);
		enter(r, RUN_IDLE);
		return;
	case RUN_IDLE:
		if (in_phase >= r->options->idle_ms)
			begin_session(r);
		return;
	case RUN_STARTING:
		if (s->writing < s->ready && in_phase < STOP_MS &&
		    !recording_has_ended(r->recording))
			return;
		recording_started(r->recording);
		begin_load(r);
		return;
	case RUN_LOAD:
		if (load_is_over(r, s))
			end_load(r);
		return;
	case RUN_CALMING:
		/* Sessions would wait for relays that were cut last. */
		if (s->ready == s->devices || r->options->churn == 0 ||
		    in_phase > CALM_MS)
			settle(r);
		return;
	case RUN_SETTLING:
		if (s->quiet == s->devices || in_phase > SETTLE_MS)
			settled(r);
		return;
	case RUN_STOPPING:
		if (recording_has_ended(r->recording) || in_phase > STOP_MS)
			loop_stop(r->loop);
		return;
	}
}

static void
tick_cb(void *arg)
{
	struct run *r = arg;
	struct fleet_state s;
	uint64_t now = loop_now_ms();

	if ((r->phase == RUN_LOAD || r->phase == RUN_IDLE) &&
	    now - r->looked_ms < LOOK_MS && !r->asked_to_end)
		return;
	r->looked_ms = now;
	fleet_look(r->fleet, &s);
	say(r, &s);
	step(r, &s);
}

static void
signal_cb(void *arg)
{
	struct run *r = arg;

	if (r->asked_to_end)
		loop_stop(r->loop);
	r->asked_to_end = true;
}

static void
changed_cb(void *arg)
{
}

/* ---- the collector of our own ---- */

static void
make_certificates(struct run *r)
{
	snprintf(r->ca, sizeof(r->ca), "/tmp/tributary-load-XXXXXX");
	if (mkdtemp(r->ca) == NULL)
		return;
	load_ca_make(r->ca);
	snprintf(r->device_dir, sizeof(r->device_dir), "%s/%s", r->ca,
	    LOAD_CA_DEVICE);
	snprintf(r->collector_dir, sizeof(r->collector_dir), "%s/%s", r->ca,
	    LOAD_CA_COLLECTOR);
	r->options->how.tls_dir = r->device_dir;
}

static void
start_daemon(struct run *r)
{
	struct load_options *o = r->options;
	bool tls = false;
	size_t i;

	for (i = 0; i < o->n_connect; i++)
		tls |= strcmp(o->connect[i], "tls") == 0;
	if (tls)
		make_certificates(r);
	process_daemon_start_with(&r->daemon, o->daemon, tls ?
	    r->collector_dir : NULL, o->daemon_config);
	r->has_daemon = true;
	o->pid = r->daemon.pid;
	if (o->consumer == NULL)
		o->consumer = r->daemon.consumers;
	for (i = 0; i < o->n_connect; i++) {
		if (strcmp(o->connect[i], "unix") == 0)
			o->connect[i] = r->daemon.producers_unix;
		else if (strcmp(o->connect[i], "tcp") == 0)
			o->connect[i] = r->daemon.producers_tcp;
		else if (strcmp(o->connect[i], "tls") == 0)
			o->connect[i] = r->daemon.producers_tls;
	}
}

static void
stop_daemon(struct run *r)
{
	if (r->has_daemon)
		process_daemon_stop(&r->daemon);
	if (r->ca[0] != '\0') {
		load_ca_remove(r->ca);
		rmdir(r->ca);
	}
}

/* ---- life ---- */

static int
prepare(struct run *r, char *err, size_t err_size)
{
	struct load_options *o = r->options;
	size_t i;

	for (i = 0; i < o->n_connect; i++) {
		if (place_init(&r->places[i], o->connect[i], &o->how,
			o->certs_dir, o->no_shm, err, err_size) != 0)
			return -1;
		r->n_places++;
	}
	r->ledger = load_ledger_new(o->ledger, o->first_key, err, err_size);
	if (r->ledger == NULL)
		return -1;
	if (o->session != NULL || o->control_ms > 0) {
		r->recording = recording_new(r->loop, o, changed_cb, r, err,
		    err_size);
		if (r->recording == NULL)
			return -1;
	}
	snprintf(err, err_size, "out of memory");
	r->hostile = hostile_new(r->loop, o, r->places, r->n_places);
	r->fleet = fleet_new(r->loop, o, r->places, r->n_places, r->ledger,
	    &r->totals, changed_cb, r);
	r->tick = loop_timer_new(r->loop, tick_cb, r);
	if (r->hostile == NULL || r->fleet == NULL || r->tick == NULL ||
	    loop_on_signal(r->loop, SIGINT, signal_cb, r) != 0 ||
	    loop_on_signal(r->loop, SIGTERM, signal_cb, r) != 0)
		return -1;
	return 0;
}

static void
report(struct run *r)
{
	struct load_report *p = &r->report;
	struct fleet_state s;

	fleet_look(r->fleet, &s);
	p->fleet = r->fleet;
	p->totals = &r->totals;
	p->hostile = r->hostile;
	p->recording = r->recording != NULL ?
	    recording_result(r->recording) : NULL;
	p->ledger = r->options->ledger;
	p->sequences = load_ledger_count(r->ledger);
	p->at_peak = s;
	p->total_s = seconds_since(r->began_ms);
	WATCH(r, end);
	load_report_print(p, stdout);
}

static void
finish(struct run *r)
{
	size_t i;

	fleet_free(r->fleet);
	hostile_free(r->hostile);
	recording_free(r->recording);
	loop_timer_free(r->tick);
	loop_free(r->loop);
	load_ledger_free(r->ledger);
	for (i = 0; i < r->n_places; i++)
		place_done(&r->places[i]);
	stop_daemon(r);
	free(r);
}

int
run(struct load_options *o)
{
	struct run *r = calloc(1, sizeof(*r));
	char err[1024] = "out of memory";
	int rc = 1;

	if (r == NULL || (r->loop = loop_new()) == NULL)
		goto out;
	r->options = o;
	fd_limit_raise();
	if (o->daemon != NULL)
		start_daemon(r);
	if (prepare(r, err, sizeof(err)) != 0)
		goto out;
	WATCH(r, begin);
	r->began_ms = r->ready_ms = loop_now_ms();
	loop_timer_set(r->tick, TICK_MS, 1);
	fleet_start(r->fleet);
	loop_run(r->loop);
	report(r);
	rc = 0;

out:
	if (rc != 0)
		fprintf(stderr, "tributary-load: %s\n", err);
	if (r != NULL)
		finish(r);
	return rc;
}
