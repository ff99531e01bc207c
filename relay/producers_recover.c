#include "transport/loop.h"
#include "relay/producers_internal.h"

void
producers_recover(struct producers *ps, bool keep, void (*done)(void *),
    void *arg)
{
	/* Memory that is a memfd of ours goes with us: nothing is left. */
	if (keep)
		loop_defer(ps->loop, done, arg);
}
