#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/record/config.h"
#include "client/record/file.h"
#include "client/record/fleet_internal.h"
#include "client/record/live_line.h"
#include "client/record/options.h"
#include "client/trace/trace_summary.h"
#include "protos/fields.h"
#include "protos/trace_config.pb-c.h"
#include "transport/base/failure.h"
#include "transport/loop/loop.h"
#include "transport/wire/pb_writer.h"

/* Letters of names in a ZIP that every system takes. */
static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

/*
 * The config for all, with the start put off until all are armed.  Sessions
 * that triggers start wait for these instead.
 */
static struct record_config *
copy_config(const struct fleet *f, char *err, size_t err_size)
{
	const Perfetto__Protos__TraceConfig *m =
	    record_config_message(f->config);
	struct record_config *c = NULL;
	struct pb_writer w;
	const uint8_t *bytes;
	size_t len;

	pb_writer_init(&w);
	bytes = record_config_bytes(f->config, &len);
	pb_put_raw(&w, bytes, len);
	if (m->trigger_config == NULL || m->trigger_config->n_triggers == 0)
		pb_put_uint(&w, TraceConfig_deferred_start, 1);
	if (w.failed)
		(void)FAILURE(err, err_size, "out of memory");
	else
		c = record_config_decode(w.data, w.len, err, err_size);
	pb_writer_done(&w);
	return c;
}

/* "c1.pftrace"; an address becomes "tls___c1_7444.pftrace". */
static void
name_part(struct fleet *f, struct fleet_part *p)
{
	size_t i, n = (size_t)(p - f->parts);
	char *at;

	snprintf(p->name, sizeof(p->name), "%.*s.pftrace",
	    (int)COLLECTOR_NAME_MAX, p->is->name);
	for (at = p->name; *at != '\0'; at++)
		if (strchr(plain, *at) == NULL)
			*at = '_';
	for (i = 0; i < n; i++)
		if (strcmp(f->parts[i].name, p->name) == 0)
			snprintf(p->name, sizeof(p->name), "%zu.pftrace", n);
}

static int
make_part(struct fleet *f, struct fleet_part *p, char *err, size_t err_size)
{
	record_notify_init(&p->notify, -1);
	p->fleet = f;
	name_part(f, p);
	if ((p->config = copy_config(f, err, err_size)) == NULL)
		return -1;
	(void)FAILURE(err, err_size, "out of memory");
	p->live = record_live_of(f->live, p->is->name);
	p->summary = trace_summary_new();
	if (p->live == NULL || p->summary == NULL ||
	    asprintf(&p->path, "%s/%s", f->folder, p->name) < 0)
		return -1;
	p->file = record_file_open(p->path, true, err, err_size);
	return p->file == NULL ? -1 : 0;
}

/* Beside the ZIP, so that it has room there. */
static int
make_folder(struct fleet *f, char *err, size_t err_size)
{
	const char *out = f->options->out;
	char *folder;
	int n;

	if (strcmp(out, "-") == 0)
		n = asprintf(&folder, "%s/tributary.XXXXXX",
		    getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/var/tmp");
	else
		n = asprintf(&folder, "%s.parts.XXXXXX", out);
	if (n < 0)
		return FAILURE(err, err_size, "out of memory");
	if (mkdtemp(folder) != NULL) {
		f->folder = folder;
		return 0;
	}
	(void)FAILURE(err, err_size, "cannot make a folder for the parts of "
	    "the trace, %s: %s", folder, strerror(errno));
	free(folder);
	return -1;
}

int
fleet_parts_make(struct fleet *f, char *err, size_t err_size)
{
	size_t i;

	if (make_folder(f, err, err_size) != 0)
		return -1;
	f->parts = calloc(f->collectors.n, sizeof(*f->parts));
	if (f->parts == NULL)
		return FAILURE(err, err_size, "out of memory");
	for (i = 0; i < f->collectors.n; i++) {
		f->parts[i].is = &f->collectors.list[i];
		if (make_part(f, &f->parts[i], err, err_size) != 0)
			return -1;
	}
	return 0;
}

static void
free_part(struct fleet_part *p, bool keep)
{
	record_session_free(p->session);
	collector_clock_free(p->measuring);
	loop_timer_free(p->late);
	record_live_free(p->live);
	record_file_free(p->file);
	trace_summary_free(p->summary);
	record_config_free(p->config);
	if (p->path != NULL && !keep)
		unlink(p->path);
	free(p->path);
}

void
fleet_parts_free(struct fleet *f, bool keep)
{
	size_t i;

	for (i = 0; f->parts != NULL && i < f->collectors.n; i++)
		if (f->parts[i].is != NULL)
			free_part(&f->parts[i], keep);
	free(f->parts);
	if (f->folder != NULL && !keep)
		rmdir(f->folder);
	free(f->folder);
}
