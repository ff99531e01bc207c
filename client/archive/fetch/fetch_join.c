#include "client/archive/fetch/fetch_join.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/archive/fetch/trace_out.h"
#include "client/archive/fetch/trace_tar.h"
#include "client/archive/join/segment_join.h"
#include "client/archive/join/segment_plan.h"
#include "client/archive/trim/trace_trim.h"
#include "client/text/progress.h"
#include "client/text/time_text.h"
#include "protos/plain_text.h"
#include "transport/base/failure.h"

/* Readings of the wall clock of one boot differ by less than this. */
#define SAME_BOOT_NS 1000000000

struct writing {
	const struct fetch_order *order; /* borrowed */
	struct fetch_result *result;
	struct trace_out *out;
	struct trace_trim *trim; /* NULL: none */
	struct segment_join_report report; /* of this recording, so far */
	struct progress progress; /* in bytes of the files */
	uint64_t read;            /* of the recordings before this one */
	bool no_memory, too_large;
};

/*
 * Refuses recordings whose boot clocks are not one: Trace Processor would put
 * them on one time line all the same, hours at the same place.
 */
static int
check_boots(const struct segment_plan *p, char *err, size_t err_size)
{
	const struct segment_head *a = &p->recordings[0].files[0].head, *b;
	char at[HUMAN_TEXT_MAX];
	int64_t apart;
	size_t i;

	for (i = 1; i < p->n_recordings; i++) {
		b = &p->recordings[i].files[0].head;
		apart = b->boot_ns - a->boot_ns;
		if (!a->has_boot || !b->has_boot || (apart < SAME_BOOT_NS &&
		    apart > -SAME_BOOT_NS))
			continue;
		return FAILURE(err, err_size, "these are %zu recordings, and "
		    "the collector was booted or its clock was set between "
		    "them, so that they do not fit on one time line; fetch "
		    "those before and behind %s by themselves (--to, --from)",
		    p->n_recordings, time_text_at(at, b->begin_realtime_ns));
	}
	return 0;
}

static void
tell(struct writing *w)
{
	if (w->order->output != NULL)
		progress_show(&w->progress, w->read + w->report.bytes);
}

/* 0: there may be more of the trace. */
static int
check_bytes(struct writing *w)
{
	w->too_large = w->order->max_bytes != 0 &&
	    trace_out_bytes(w->out) > w->order->max_bytes;
	return w->too_large ? -1 : 0;
}

static int
packet_cb(void *arg, const uint8_t *data, size_t len)
{
	struct writing *w = arg;

	tell(w);
	if (w->trim != NULL && trace_trim_packet(w->trim, data, len, &data,
	    &len) < 0) {
		w->no_memory = true;
		return -1;
	}
	if (data == NULL)
		return 0;
	w->result->packets++;
	return trace_out_packet(w->out, data, len) != 0 ? -1 : check_bytes(w);
}

static int
stored_cb(void *arg, const uint8_t *framed, size_t len)
{
	struct writing *w = arg;

	tell(w);
	return trace_out_put(w->out, framed, len) != 0 ? -1 : check_bytes(w);
}

static void
note_cb(void *arg, const char *text)
{
	struct writing *w = arg;

	if (w->order->output == NULL)
		return;
	progress_clear(&w->progress);
	plain_printf(stderr, "%s: %s\n", w->order->speaker, text);
}

/* -1: err is set, unless the output failed, which tells for itself. */
static int
write_recording(struct writing *w, const struct segment_recording *r, char *err,
    size_t err_size)
{
	const struct segment_join_ops ops = { packet_cb,
		w->order->trim ? NULL : stored_cb, note_cb, w,
		w->order->stop };
	struct trace_trim_counts counts;
	uint64_t before = w->result->packets;
	int rc;

	if (w->order->trim && (w->trim = trace_trim_new(w->order->from_ns,
	    w->order->to_ns)) == NULL)
		return FAILURE(err, err_size, "out of memory");
	rc = segment_join_run(&w->report, r, &ops, err, err_size);
	if (w->no_memory)
		snprintf(err, err_size, "out of memory");
	if (w->too_large)
		snprintf(err, err_size, "the trace would have more than %"
		    PRIu64 " MiB: narrow the time", w->order->max_bytes >> 20);
	w->result->files += w->report.files;
	w->result->gaps += w->report.gaps;
	w->result->unfinished += w->report.unfinished;
	w->read += w->report.bytes;
	if (w->trim == NULL) {
		/* Packets that were stored together count, too. */
		w->result->packets = before + w->report.packets;
		return rc;
	}
	counts = trace_trim_counts(w->trim);
	w->result->trimmed += counts.dropped;
	w->result->timeless += counts.timeless;
	trace_trim_free(w->trim);
	w->trim = NULL;
	return rc;
}

static int
write_all(struct writing *w, const struct segment_plan *plan, char *err,
    size_t err_size)
{
	uint64_t begin;
	char name[32];
	size_t i;

	if (plan->n_recordings == 1)
		return write_recording(w, &plan->recordings[0], err, err_size);
	for (i = 0; i < plan->n_recordings; i++) {
		snprintf(name, sizeof(name), "%zu.pftrace", i + 1);
		begin = trace_tar_begin(w->out, name);
		if (write_recording(w, &plan->recordings[i], err, err_size) < 0)
			return -1;
		if (trace_out_bytes(w->out) - begin > TRACE_TAR_MAX)
			return FAILURE(err, err_size, "recording %zu has more "
			    "than 8 GiB; fetch it alone", i + 1);
		if (trace_tar_end(w->out, name, begin) < 0)
			return -1;
	}
	trace_tar_finish(w->out);
	return 0;
}

/* Bytes of all files, as far as it can be known. */
static uint64_t
bytes_of(const struct segment_plan *plan)
{
	uint64_t sum = 0;
	struct stat st;
	size_t i;

	for (i = 0; i < plan->n; i++)
		if (stat(plan->files[i].path, &st) == 0 && st.st_size > 0)
			sum += (uint64_t)st.st_size;
	return sum;
}

int
fetch_join(struct fetch_result *out, const struct fetch_order *order,
    const struct segment_plan *plan, char *err, size_t err_size)
{
	struct fetch_result result = { .files = 0 };
	struct writing w = { .order = order, .result = &result };
	int rc;

	if (check_boots(plan, err, err_size) < 0)
		return -1;
	w.out = order->output == NULL ? trace_out_into(order->fd, err,
	    err_size) : trace_out_open(order->output, err, err_size);
	if (w.out == NULL)
		return -1;
	err[0] = '\0';
	progress_begin_bytes(&w.progress, "joined", bytes_of(plan));
	rc = write_all(&w, plan, err, err_size);
	progress_clear(&w.progress);
	/* Without a sentence it was the output that failed. */
	if (rc == 0 || err[0] == '\0')
		rc = trace_out_finish(w.out, err, err_size);
	result.bytes = trace_out_bytes(w.out);
	trace_out_close(w.out);
	if (rc == 0)
		*out = result;
	return rc;
}
