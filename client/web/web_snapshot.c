#include "client/web/web_snapshot.h"

#include <stdlib.h>

#include "protos/control.pb-c.h"

struct web_snapshot *
web_snapshot_new(void)
{
	struct web_snapshot *s = calloc(1, sizeof(*s));

	if (s != NULL)
		atomic_init(&s->refs, 1);
	return s;
}

struct web_snapshot *
web_snapshot_ref(struct web_snapshot *s)
{
	atomic_fetch_add(&s->refs, 1);
	return s;
}

void
web_snapshot_unref(struct web_snapshot *s)
{
	if (s == NULL || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	if (s->metrics != NULL)
		tributary__query_metrics_reply__free_unpacked(s->metrics, NULL);
	if (s->sessions != NULL)
		tributary__query_sessions_reply__free_unpacked(s->sessions,
		    NULL);
	if (s->recordings != NULL)
		tributary__query_recordings_reply__free_unpacked(s->recordings,
		    NULL);
	if (s->machines != NULL)
		tributary__query_machines_reply__free_unpacked(s->machines,
		    NULL);
	if (s->producers != NULL)
		tributary__query_producers_reply__free_unpacked(s->producers,
		    NULL);
	free(s->session_rates.all);
	free(s->machine_rates.all);
	free(s->producer_rates.all);
	free(s);
}
