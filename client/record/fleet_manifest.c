#include "client/record/fleet_manifest.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "client/trace/machine_names.h"
#include "client/trace/trace_summary.h"
#include "client/trace/wall_clock.h"
#include "protos/json_out.h"

#define NAME_MAX_BYTES 300

struct manifest {
	struct json_out j;
	const struct fleet_trace *traces;
	size_t n;
	const struct fleet_trace *reference; /* NULL: none has clocks */
};

/* Machines other than the collector's own that have packets in the trace. */
static bool
has_devices(const struct fleet_trace *t)
{
	const struct machine_name *m;
	size_t i, n = trace_summary_machines(t->summary, &m);

	for (i = 0; i < n; i++)
		if (m[i].seen && m[i].id != 0)
			return true;
	return false;
}

/*
 * Whether the name means one machine: files that use the same name share it, so
 * that a device which moved between collectors is one, but a collector, or a
 * second boot with another id, must not be taken for a device.
 */
static bool
is_plain(const struct manifest *f, const struct machine_name *all, size_t i)
{
	size_t k;

	for (k = 0; k < i; k++)
		if (all[k].seen && all[k].name != NULL &&
		    strcmp(all[k].name, all[i].name) == 0)
			return false;
	for (k = 0; k < f->n; k++)
		if (strcmp(f->traces[k].collector, all[i].name) == 0)
			return false;
	return true;
}

static const char *
machine_name(const struct manifest *f, const struct fleet_trace *t,
    const struct machine_name *all, size_t i, char out[NAME_MAX_BYTES])
{
	if (all[i].id == 0)
		return t->collector;
	if (all[i].name == NULL || all[i].name[0] == '\0')
		snprintf(out, NAME_MAX_BYTES, "machine %" PRIu32 " of %s",
		    all[i].id, t->collector);
	else if (is_plain(f, all, i))
		return all[i].name;
	else
		snprintf(out, NAME_MAX_BYTES, "%.200s (%" PRIu32 ")",
		    all[i].name, all[i].id);
	return out;
}

static void
put_machine(struct json_out *j, uint32_t id, const char *name)
{
	json_object(j, NULL);
	json_uint(j, "id", id);
	json_string(j, "name", name);
	json_object_end(j);
}

static void
put_machines(struct manifest *f, const struct fleet_trace *t)
{
	const struct machine_name *m;
	char name[NAME_MAX_BYTES];
	size_t i, n = trace_summary_machines(t->summary, &m);
	bool host = false;

	if (!has_devices(t)) {
		json_object(&f->j, "machine");
		json_string(&f->j, "name", t->collector);
		json_object_end(&f->j);
		return;
	}
	json_array(&f->j, "machines");
	for (i = 0; i < n; i++) {
		if (!m[i].seen)
			continue;
		put_machine(&f->j, m[i].id, machine_name(f, t, m, i, name));
		host |= m[i].id == 0;
	}
	/* The clocks below are this one's. */
	if (!host)
		put_machine(&f->j, 0, t->collector);
	json_array_end(&f->j);
}

/* One end of a relation between clocks: the collector's boot clock. */
static void
put_clock(struct manifest *f, const struct fleet_trace *t)
{
	json_string(&f->j, "clock", "BOOTTIME");
	if (has_devices(t))
		json_string(&f->j, "machine", t->collector);
}

/* Boot clock of the collector less the wall clock of this machine. */
static int64_t
boot_ahead(const struct fleet_trace *t)
{
	struct wall_clock c;

	if (!trace_summary_wall_clock(t->summary, &c))
		return 0;
	return (int64_t)(c.boottime_ns - c.realtime_ns) + t->ahead_ns;
}

static bool
has_clock(const struct fleet_trace *t)
{
	struct wall_clock c;

	return trace_summary_wall_clock(t->summary, &c);
}

static void
put_clocks(struct manifest *f, const struct fleet_trace *t)
{
	if (t == f->reference || f->reference == NULL || !has_clock(t))
		return;
	json_object(&f->j, "clocks");
	put_clock(f, t);
	json_object(&f->j, "sync_to");
	json_string(&f->j, "file", f->reference->path);
	put_clock(f, f->reference);
	json_object_end(&f->j);
	json_int(&f->j, "offset_ns", boot_ahead(f->reference) - boot_ahead(t));
	json_object_end(&f->j);
}

static void
put_trace_time(struct manifest *f)
{
	if (f->reference == NULL)
		return;
	json_object(&f->j, "trace_time");
	put_clock(f, f->reference);
	json_string(&f->j, "file", f->reference->path);
	json_object_end(&f->j);
}

void
fleet_manifest_print(FILE *out, const struct fleet_trace *traces, size_t n,
    const char *uuid)
{
	struct manifest f = { .j.out = out, .traces = traces, .n = n };
	size_t i;

	for (i = n; i-- > 0;)
		if (has_clock(&traces[i]))
			f.reference = &traces[i];
	json_object(&f.j, NULL);
	json_object(&f.j, "perfetto_manifest");
	json_uint(&f.j, "version", 1);
	put_trace_time(&f);
	json_array(&f.j, "files");
	for (i = 0; i < n; i++) {
		json_object(&f.j, NULL);
		json_string(&f.j, "path", traces[i].path);
		put_machines(&f, &traces[i]);
		put_clocks(&f, &traces[i]);
		json_object_end(&f.j);
	}
	json_array_end(&f.j);
	json_object(&f.j, "attributes");
	json_string(&f.j, "tributary.trace_uuid", uuid);
	json_object_end(&f.j);
	json_object_end(&f.j);
	json_object_end(&f.j);
	fputc('\n', out);
}
