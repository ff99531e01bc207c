#include "client/inspect/inspection.h"

#include <stdlib.h>

#include "client/inspect/session_log.h"
#include "client/inspect/trace_window.h"
#include "client/packet_facts.h"
#include "client/trace_summary.h"

struct inspection {
	struct packet_types types;
	struct trace_scan scan;
	struct trace_summary *summary; /* owned */
	struct session_log log;
};

struct inspection *
inspection_new(void)
{
	struct inspection *i;

	if ((i = calloc(1, sizeof(*i))) == NULL)
		return NULL;
	if ((i->summary = trace_summary_new()) == NULL)
		goto fail;
	packet_types_init(&i->types);
	return i;

fail:
	inspection_free(i);
	return NULL;
}

void
inspection_free(struct inspection *i)
{
	if (i == NULL)
		return;
	trace_summary_free(i->summary);
	session_log_done(&i->log);
	free(i);
}

static bool
packet_cb(void *arg, const uint8_t *data, size_t len, uint64_t bytes)
{
	struct inspection *i = arg;
	struct packet_facts f;

	if (!packet_facts_read(&f, &i->types, data, len))
		return false;
	(void)trace_summary_take(i->summary, &f, bytes);
	session_log_take(&i->log, &f);
	return true;
}

int
inspection_run(struct inspection *i, struct trace_window *w, uint64_t size,
    char *err, size_t err_size)
{
	static const struct trace_scan_ops ops = { .packet = packet_cb };

	return trace_scan_run(&i->scan, w, size, &ops, i, err, err_size);
}

const struct trace_scan *
inspection_scan(const struct inspection *i)
{
	return &i->scan;
}

struct trace_summary *
inspection_summary(const struct inspection *i)
{
	return i->summary;
}

const struct session_log *
inspection_log(const struct inspection *i)
{
	return &i->log;
}
