#include "client/text/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void
progress_begin(struct progress *p, const char *what, uint64_t total)
{
	const char *term = getenv("TERM");

	*p = (struct progress){ .what = what, .total = total };
	p->enabled = total > 0 && isatty(STDERR_FILENO) && term != NULL &&
	    strcmp(term, "dumb") != 0;
	p->begun_ms = now_ms();
}

bool
progress_is_due(const struct progress *p, uint64_t now)
{
	return p->enabled && now >= p->begun_ms + PROGRESS_AFTER_MS &&
	    now >= p->shown_ms + PROGRESS_PERIOD_MS;
}

void
progress_show(struct progress *p, uint64_t done)
{
	uint64_t now;

	/* Asked for each packet: the clock only where it is of use. */
	if (!p->enabled || !progress_is_due(p, now = now_ms()))
		return;
	/* The rest of the line is erased after the text: no flicker. */
	fprintf(stderr, "\r%s: %" PRIu64 " of %" PRIu64 " (%.0f %%)\033[K",
	    p->what, done, p->total, 100.0 * (double)done / (double)p->total);
	fflush(stderr);
	p->shown = true;
	p->shown_ms = now;
}

void
progress_clear(struct progress *p)
{
	if (!p->shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	p->shown = false;
}
