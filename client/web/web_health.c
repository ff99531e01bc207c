#include "client/web/web_health.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/web/web_snapshot.h"
#include "protos/control.pb-c.h"
#include "transport/base/compiler.h"
#include "transport/base/human_numbers.h"

#define DAY_S        UINT64_C(86400)
#define WARN_DAYS    14u
#define WARN_HOURS   24.0
/* Disks with less room than this are nearly full whatever is written. */
#define LEAST_BYTES  (UINT64_C(256) << 20)

#define RECORDING(name) TRIBUTARY__RECORDING_STATE__STATE__##name
#define MACHINE(name)   TRIBUTARY__MACHINE_STATE__STATE__##name

static void complain(struct web_health *h, const char *form, ...)
    __attribute__((format(printf, 2, 3)));

static void
complain(struct web_health *h, const char *form, ...)
{
	va_list ap;

	if (h->n == WEB_PROBLEMS_MAX) {
		h->more++;
		return;
	}
	va_start(ap, form);
	vsnprintf(h->problems[h->n++], WEB_PROBLEM_MAX, form, ap);
	va_end(ap);
}

static void
judge_recordings(struct web_health *h,
    const Tributary__QueryRecordingsReply *r)
{
	const Tributary__RecordingState *e;
	size_t i;

	for (i = 0; r != NULL && i < r->n_recordings; i++) {
		e = r->recordings[i];
		if (e->state == RECORDING(WAITING))
			complain(h, "Recording %s does not run, and will be "
			    "tried again: %s.", e->name, e->reason != NULL ?
			    e->reason : "no reason is known");
		else if (e->state == RECORDING(STOPPED))
			complain(h, "Recording %s was stopped by a person.",
			    e->name);
		if (e->snapshot_error != NULL)
			complain(h, "Recording %s could not write its last "
			    "segment: %s.", e->name, e->snapshot_error);
	}
}

static void
judge_sessions(struct web_health *h, const Tributary__QuerySessionsReply *r)
{
	size_t i;

	if (r == NULL)
		return;
	if (r->overload != NULL && r->overload->level != 0)
		complain(h, "The collector is overloaded (input waits %" PRIu64
		    " ms): %s.", r->overload->lag_ms,
		    r->overload->text != NULL ? r->overload->text : "");
	for (i = 0; i < r->n_sessions; i++)
		if (r->sessions[i]->error != NULL)
			complain(h, "Session %" PRIu64 " failed: %s",
			    r->sessions[i]->id, r->sessions[i]->error);
}

static void
judge_machines(struct web_health *h, const Tributary__QueryMachinesReply *r)
{
	size_t i, n = 0;

	for (i = 0; r != NULL && i < r->n_machines; i++)
		n += r->machines[i]->state == MACHINE(CUT);
	if (n > 0)
		complain(h, "%zu machine%s cut off.", n, n == 1 ? " is" :
		    "s are");
}

static void
judge_certificate(struct web_health *h, const Tributary__QueryMetricsReply *m,
    uint64_t now_s)
{
	uint64_t end = m->certificate_expiry_s;

	if (!m->has_certificate_expiry_s || end >= now_s + WARN_DAYS * DAY_S)
		return;
	if (end < now_s)
		complain(h, "The collector's certificate has ended: nobody can "
		    "connect with TLS.");
	else
		complain(h, "The collector's certificate ends in %" PRIu64
		    " day%s.", (end - now_s) / DAY_S,
		    human_s((end - now_s) / DAY_S));
}

double
web_health_hours_left(const struct web_snapshot *s, const char *folder)
{
	uint64_t rate = 0, room = 0;
	size_t i;

	/* Recordings write nowhere else. */
	if (s->metrics == NULL || s->recordings == NULL ||
	    strcmp(folder, "archive_dir") != 0)
		return -1;
	for (i = 0; i < s->recordings->n_recordings; i++)
		rate += s->recordings->recordings[i]->bytes_per_second;
	for (i = 0; i < s->metrics->n_disk_free_bytes; i++)
		if (s->metrics->disk_free_bytes[i]->label != NULL &&
		    strcmp(s->metrics->disk_free_bytes[i]->label, folder) == 0)
			room = s->metrics->disk_free_bytes[i]->value;
	return rate == 0 ? -1 : (double)room / (double)rate / 3600;
}

static void
judge_disks(struct web_health *h, const struct web_snapshot *s)
{
	const Tributary__QueryMetricsReply__Count *c;
	char text[HUMAN_TEXT_MAX];
	double hours;
	size_t i;

	for (i = 0; i < s->metrics->n_disk_free_bytes; i++) {
		c = s->metrics->disk_free_bytes[i];
		if (c->label == NULL)
			continue;
		hours = web_health_hours_left(s, c->label);
		if (c->value < LEAST_BYTES)
			complain(h, "The disk of %s is nearly full: %s are "
			    "left.", c->label, human_bytes(text, c->value));
		else if (hours >= 0 && hours < WARN_HOURS)
			complain(h, "The disk of %s is full in %.1f hours.",
			    c->label, hours);
	}
}

void
web_health_judge(struct web_health *h, const struct web_snapshot *s,
    uint64_t now_s)
{
	h->n = h->more = 0;
	if (s->why[0] != '\0') {
		complain(h, "The collector cannot be asked: %s", s->why);
		return;
	}
	judge_sessions(h, s->sessions);
	judge_recordings(h, s->recordings);
	judge_machines(h, s->machines);
	if (s->metrics == NULL)
		return;
	judge_certificate(h, s->metrics, now_s);
	judge_disks(h, s);
}
