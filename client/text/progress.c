#include "client/text/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "client/text/terminal.h"
#include "transport/base/human_numbers.h"

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
	*p = (struct progress){ .what = what, .total = total };
	p->enabled = terminal_redraws(STDERR_FILENO);
	p->begun_ms = p->moved_ms = now_ms();
}

void
progress_begin_bytes(struct progress *p, const char *what, uint64_t total)
{
	progress_begin(p, what, total);
	p->in_bytes = true;
}

void
progress_expect(struct progress *p, uint64_t total)
{
	p->total = total;
}

bool
progress_is_due(const struct progress *p, uint64_t now)
{
	return p->enabled && now >= p->begun_ms + PROGRESS_AFTER_MS &&
	    now >= p->shown_ms + PROGRESS_PERIOD_MS;
}

void
progress_note(struct progress *p, uint64_t done, uint64_t now)
{
	if (done == p->done)
		return;
	p->done = done;
	p->moved_ms = now;
}

/* Steps in which a time is told. */
static uint64_t
step_ms(uint64_t left)
{
	if (left < 10000)
		return 1000;
	if (left < 60000)
		return 5000;
	return left < 600000 ? 10000 : 60000;
}

uint64_t
progress_left_ms(const struct progress *p, uint64_t now)
{
	uint64_t taken = p->moved_ms - p->begun_ms, step, left;
	double all;

	if (taken < PROGRESS_STEADY_MS || p->done == 0 || p->done >= p->total)
		return 0;
	/* Until more is done the end stays, and comes nearer. */
	all = (double)taken / (double)p->done * (double)p->total;
	left = human_whole(all);
	if (left <= now - p->begun_ms)
		return 0;
	left -= now - p->begun_ms;
	step = step_ms(left);
	if (left <= UINT64_MAX - step)
		left = (left + step - 1) / step * step;
	return p->left_ms != 0 && left > p->left_ms &&
	    left - p->left_ms <= step ? p->left_ms : left;
}

void
progress_text(const struct progress *p, uint64_t left,
    char out[PROGRESS_TEXT_MAX])
{
	uint64_t done = p->total != 0 && p->done > p->total ? p->total :
	    p->done;
	char part[HUMAN_TEXT_MAX], all[HUMAN_TEXT_MAX], time[HUMAN_TEXT_MAX];
	int n;

	if (p->in_bytes) {
		human_bytes(part, done);
		human_bytes(all, p->total);
	} else {
		snprintf(part, sizeof(part), "%" PRIu64, done);
		snprintf(all, sizeof(all), "%" PRIu64, p->total);
	}
	if (p->total == 0) {
		snprintf(out, PROGRESS_TEXT_MAX, "%s: %s so far", p->what,
		    part);
		return;
	}
	n = snprintf(out, PROGRESS_TEXT_MAX, "%s: %s of %s (%.0f %%)", p->what,
	    part, all, 100.0 * (double)done / (double)p->total);
	if (left == 0 || n < 0 || n >= PROGRESS_TEXT_MAX)
		return;
	if (left < 60000)
		snprintf(time, sizeof(time), "%" PRIu64 " s", left / 1000);
	else
		human_ms(time, left);
	snprintf(out + n, PROGRESS_TEXT_MAX - (size_t)n, ", %s left", time);
}

void
progress_show(struct progress *p, uint64_t done)
{
	char text[PROGRESS_TEXT_MAX];
	uint64_t now;

	/* Asked for each packet: the clock only where it is of use. */
	if (!p->enabled)
		return;
	progress_note(p, done, now = now_ms());
	if (!progress_is_due(p, now))
		return;
	p->left_ms = progress_left_ms(p, now);
	progress_text(p, p->left_ms, text);
	/*
	 * The rest of the line is erased after the text: no flicker.  A line
	 * that wrapped on a narrow terminal could not be drawn over.  The
	 * cursor goes to the begin: what another program has to say meanwhile
	 * takes the line's place.
	 */
	fprintf(stderr, "\r\033[?7l%s\033[K\033[?7h\r", text);
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
