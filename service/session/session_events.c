#include "service/session/session_events.h"

#include "service/model/model.h"

void
session_events_tell(struct session *s, enum session_event e)
{
	const struct session_observer *const *o = s->service->observers;

	/* The last one may free s. */
	for (; *o != NULL; o++)
		if ((*o)->session != NULL)
			(*o)->session(s, e);
}

void
session_events_producer_leaves(struct producer *p)
{
	const struct session_observer *const *o = p->service->observers;

	for (; *o != NULL; o++)
		if ((*o)->producer_leaves != NULL)
			(*o)->producer_leaves(p);
}

void
session_events_source_leaves(struct data_source *ds)
{
	const struct session_observer *const *o =
	    ds->producer->service->observers;

	for (; *o != NULL; o++)
		if ((*o)->source_leaves != NULL)
			(*o)->source_leaves(ds);
}
