#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "client/archive/fetch/trace_out.h"
#include "client/archive/fetch/trace_zip.h"
#include "client/record/config.h"
#include "client/record/file.h"
#include "client/record/fleet_internal.h"
#include "client/record/fleet_manifest.h"
#include "client/record/live_line.h"
#include "client/record/options.h"
#include "client/record/run.h"
#include "client/text/text_cell.h"
#include "client/trace/machine_names.h"
#include "client/trace/trace_losses.h"
#include "client/trace/trace_report.h"
#include "client/trace/trace_summary.h"
#include "protos/plain_text.h"
#include "protos/trace_config.pb-c.h"
#include "transport/base/failure.h"
#include "transport/base/human_numbers.h"

#define ERROR_BYTES 2048
#define MANIFEST "perfetto_manifest.json"
/* Machines that the verdict names; more are counted. */
#define NAMED_MACHINES 8u

/* ---- the ZIP ---- */

/* Whole packets at the beginning of its file, in bytes. */
static uint64_t
whole_bytes(const struct fleet_part *p)
{
	uint64_t whole = trace_summary_whole_bytes(p->summary);
	struct stat st;

	if (fstat(record_file_fd(p->file), &st) != 0)
		return 0;
	/* Files that we wrote ourselves end on one. */
	return whole != 0 && whole < (uint64_t)st.st_size ? whole :
	    (uint64_t)st.st_size;
}

static bool
is_in_zip(const struct fleet_part *p)
{
	return p->state == PART_ENDED && whole_bytes(p) > 0;
}

static int
put_manifest(const struct fleet *f, struct trace_zip *z, char *err,
    size_t err_size)
{
	/* The uuid is in what was sent, which f->config may have made up. */
	const Perfetto__Protos__TraceConfig *m =
	    record_config_message(f->parts[0].config);
	struct fleet_trace *traces = calloc(f->collectors.n, sizeof(*traces));
	char uuid[40], *text = NULL;
	size_t i, n = 0, len = 0;
	FILE *out = open_memstream(&text, &len);
	int rc;

	for (i = 0; traces != NULL && i < f->collectors.n; i++)
		if (is_in_zip(&f->parts[i]))
			traces[n++] = (struct fleet_trace){
				f->parts[i].name, f->parts[i].is->name,
				f->parts[i].summary,
				f->parts[i].clock.ahead_ns };
	snprintf(uuid, sizeof(uuid), "%016" PRIx64 "%016" PRIx64,
	    (uint64_t)m->trace_uuid_msb, (uint64_t)m->trace_uuid_lsb);
	if (out != NULL && traces != NULL)
		fleet_manifest_print(out, traces, n, uuid);
	if (out == NULL || traces == NULL || fclose(out) != 0)
		rc = FAILURE(err, err_size, "out of memory");
	else
		rc = trace_zip_text(z, MANIFEST, text, len, err, err_size);
	free(text);
	free(traces);
	return rc;
}

static int
fill(const struct fleet *f, struct trace_zip *z, char *err, size_t err_size)
{
	const struct fleet_part *p;
	size_t i;

	if (put_manifest(f, z, err, err_size) != 0)
		return -1;
	for (i = 0; i < f->collectors.n; i++) {
		p = &f->parts[i];
		if (is_in_zip(p) && trace_zip_file(z, p->name,
		    record_file_fd(p->file), whole_bytes(p), err,
		    err_size) != 0)
			return -1;
	}
	return trace_zip_finish(z, err, err_size);
}

static int
make_zip(const struct fleet *f, char *err, size_t err_size)
{
	struct trace_out *o = trace_out_open(f->options->out, err, err_size);
	struct trace_zip *z;
	int rc = -1;

	if (o == NULL)
		return -1;
	if ((z = trace_zip_new(o, TRACE_ZIP_PLAIN_MAX)) == NULL)
		(void)FAILURE(err, err_size, "out of memory");
	else if (fill(f, z, err, err_size) == 0)
		rc = trace_out_finish(o, err, err_size);
	trace_zip_free(z);
	trace_out_close(o);
	return rc;
}

/* ---- the verdict ---- */

static void
add(struct trace_totals *all, const struct trace_totals *t)
{
	all->packets += t->packets;
	all->bytes += t->bytes;
	all->expanded_bytes += t->expanded_bytes;
	all->compressed += t->compressed;
	if (t->duration_ns > all->duration_ns)
		all->duration_ns = t->duration_ns;
}

/* "c1, kiosk-7 and 3 more" */
static void
print_machines(const struct fleet_part *p)
{
	const struct machine_name *m;
	size_t i, n = trace_summary_machines(p->summary, &m), named = 0,
	    more = 0;
	char text[TEXT_CELL_MAX];

	for (i = 0; i < n; i++) {
		if (!m[i].seen || m[i].id == 0)
			continue;
		if (named == NAMED_MACHINES || m[i].name == NULL) {
			more++;
			continue;
		}
		fprintf(stderr, "%s%s", named++ == 0 ? ", with " : ", ",
		    text_cell_plain(m[i].name, text));
	}
	if (more > 0)
		fprintf(stderr, "%s%zu more", named == 0 ? ", with " : " and ",
		    more);
}

static void
print_part(const struct fleet_part *p)
{
	const struct trace_totals *t = trace_summary_totals(p->summary);
	char packets[HUMAN_TEXT_MAX], bytes[HUMAN_TEXT_MAX];

	fputs("Collector       ", stderr);
	plain_text_put(stderr, p->is->name);
	if (p->state == PART_MISSING) {
		plain_printf(stderr, " is missing: %s\n", p->result.failure);
		return;
	}
	fprintf(stderr, ": %s packet%s, %s", human_count(packets, t->packets),
	    human_s(t->packets), human_bytes(bytes, t->bytes));
	print_machines(p);
	fputc('\n', stderr);
	if (!p->result.whole)
		plain_printf(stderr, TRACE_REPORT_INDENT "not whole: %s\n",
		    p->result.failure);
	trace_report_foreign_clocks(stderr, p->summary);
	trace_report_troubles(stderr, p->summary);
	trace_report_losses(stderr, p->summary);
}

static uint64_t
losses(const struct fleet_part *p)
{
	const struct Perfetto__Protos__TraceStats *s =
	    trace_summary_stats(p->summary);

	return s == NULL ? 0 : trace_losses_total(s);
}

static void
print_verdict(const struct fleet *f)
{
	struct trace_totals all = { 0 };
	char text[HUMAN_TEXT_MAX];
	size_t i, whole = 0;
	uint64_t lost = 0;

	for (i = 0; i < f->collectors.n; i++) {
		if (f->parts[i].state != PART_ENDED)
			continue;
		add(&all, trace_summary_totals(f->parts[i].summary));
		lost += losses(&f->parts[i]);
		whole += f->parts[i].result.whole;
	}
	trace_report_head(stderr, &all, f->options->out, 0);
	for (i = 0; i < f->collectors.n; i++)
		print_part(&f->parts[i]);
	fprintf(stderr, "In all          %zu of %zu collectors whole, %s lost\n",
	    whole, f->collectors.n, lost == 0 && whole == f->collectors.n ?
	    "nothing" : lost == 0 ? "nothing that is known" :
	    human_count(text, lost));
}

/* Warnings, with -q, too. */
static void
say_large_members(const struct fleet *f)
{
	size_t i;

	for (i = 0; i < f->collectors.n; i++)
		if (is_in_zip(&f->parts[i]) &&
		    whole_bytes(&f->parts[i]) > TRACE_ZIP_PLAIN_MAX)
			record_live_say(f->live, "%s has 4 GiB or more: "
			    "Trace Processor does not read that inside of a "
			    "ZIP (unzip it first)", f->parts[i].name);
}

static int
status_of(const struct fleet *f)
{
	bool not_recorded = false;
	size_t i;

	for (i = 0; i < f->collectors.n; i++) {
		if (f->parts[i].state == PART_MISSING)
			continue; /* --allow-missing */
		if (!f->parts[i].result.whole)
			return RECORD_STATUS_FAILED;
		not_recorded |= trace_summary_not_recorded(f->parts[i].summary);
	}
	return not_recorded ? RECORD_RUN_NOT_ALL : RECORD_STATUS_OK;
}

static bool
is_anything_there(const struct fleet *f)
{
	size_t i;

	for (i = 0; i < f->collectors.n; i++)
		if (is_in_zip(&f->parts[i]))
			return true;
	return false;
}

int
fleet_result(struct fleet *f, bool *keep_parts)
{
	char err[ERROR_BYTES];

	if (f->given_up || !is_anything_there(f)) {
		record_live_say(f->live, "nothing was recorded%s",
		    f->given_up && !f->options->line.allow_missing ?
		    ": every collector has to take part, or to be missed with "
		    "--allow-missing" : "");
		return RECORD_STATUS_FAILED;
	}
	if (make_zip(f, err, sizeof(err)) != 0) {
		record_live_say(f->live, "%s; each collector's trace is in %s",
		    err, f->folder);
		*keep_parts = true;
		return RECORD_STATUS_FAILED;
	}
	if (!f->options->quiet)
		print_verdict(f);
	say_large_members(f);
	return status_of(f);
}
