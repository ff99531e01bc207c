#include "relay/uplink/choice.h"

#include <string.h>

#include "transport/base/backoff.h"

const char *
choice_why_text(enum choice_why why)
{
	switch (why) {
	case CHOICE_HOME:
		return "";
	case CHOICE_HOME_DOWN:
		return "home did not answer at the start";
	case CHOICE_GONE:
		return "the collector before was gone for too long";
	case CHOICE_ASKED:
		return "the collector before asked to be left";
	case CHOICE_HOMEWARD:
		return "it answers again, and is nearer to home";
	}
	return "?";
}

int
choice_init(struct choice *c, const char *machine,
    const char *const *collectors, size_t n, const struct choice_times *times,
    char *err, size_t err_size)
{
	memset(c, 0, sizeof(*c));
	c->times = *times;
	c->n = n;
	c->own = CHOICE_NONE;
	return placement_order(machine, collectors, n, c->order, err, err_size);
}

size_t
choice_place(const struct choice *c)
{
	return c->order[c->at];
}

size_t
choice_home(const struct choice *c)
{
	return c->order[0];
}

/*
 * Grows with each round: collectors that are all slow, as when a fleet comes
 * back, must not be given up for ever.
 */
uint64_t
choice_patience_ms(const struct choice *c)
{
	uint64_t ms = CHOICE_FIRST_PATIENCE_MS;

	if (c->n == 1 || c->rounds > 1)
		return CHOICE_PATIENCE_MS;
	return ms << c->rounds;
}

/* The rank that follows in a round, which own begins; n: none. */
static size_t
following(const struct choice *c, size_t rank)
{
	size_t next = rank == c->own ? 0 : rank + 1;

	return next == c->own ? next + 1 : next;
}

static void
count_gone(struct choice *c, uint64_t now_ms, uint32_t random)
{
	double factor = 1 + (double)random / UINT32_MAX;

	c->cut_ms = now_ms;
	c->move_ms = now_ms +
	    (uint64_t)(factor * (double)c->times.move_after_ms);
}

void
choice_begin_at(struct choice *c, size_t place, uint64_t now_ms,
    uint32_t random)
{
	size_t rank;

	for (rank = 0; rank < c->n; rank++)
		if (c->order[rank] == place)
			break;
	if (rank == c->n)
		return;
	c->own = c->at = rank;
	c->was_cut = true;
	count_gone(c, now_ms, random);
}

void
choice_linked(struct choice *c, uint64_t now_ms)
{
	if (c->linked)
		return;
	c->wants_home = c->was_cut && c->at == c->own && c->at != 0;
	if (c->own == CHOICE_NONE) {
		c->why = c->at == 0 ? CHOICE_HOME : CHOICE_HOME_DOWN;
	} else if (c->at != c->own) {
		c->why = c->leaving ? c->leaving_why : CHOICE_GONE;
		c->moves++;
		c->moved_ms = now_ms;
	}
	c->own = c->at;
	c->linked = true;
	c->was_cut = false;
	c->leaving = false;
	c->rounds = 0;
}

/* None of those that were to be tried has answered. */
static uint64_t
pause_round(struct choice *c, uint64_t now_ms, uint32_t random)
{
	uint64_t ms = backoff_ms(++c->failures, c->times.min_retry_ms,
	    c->times.max_retry_ms, random);

	c->at = c->own != CHOICE_NONE ? c->own : 0;
	/* The collector's last chance comes when its time is over. */
	if (c->n > 1 && c->own != CHOICE_NONE && now_ms < c->move_ms &&
	    c->move_ms - now_ms < ms)
		return c->move_ms - now_ms;
	return ms;
}

static uint64_t
cut(struct choice *c, bool good, uint64_t now_ms, uint32_t random)
{
	c->linked = false;
	c->was_cut = true;
	c->wants_home = false;
	if (good)
		c->failures = 0;
	count_gone(c, now_ms, random);
	return pause_round(c, now_ms, random);
}

static uint64_t
could_not_leave(struct choice *c, uint64_t now_ms, uint32_t random)
{
	c->leaving = false;
	c->at = c->own;
	count_gone(c, now_ms, random);
	return 0;
}

uint64_t
choice_ended(struct choice *c, bool good, uint64_t now_ms, uint32_t random)
{
	size_t next = following(c, c->at);

	if (c->linked)
		return cut(c, good, now_ms, random);
	if (c->leaving && (next >= c->n ||
		(c->leaving_why == CHOICE_HOMEWARD && next > c->own)))
		return could_not_leave(c, now_ms, random);
	if (!c->leaving && c->own != CHOICE_NONE && now_ms < c->move_ms)
		return pause_round(c, now_ms, random);
	if (next < c->n) {
		c->at = next;
		return 0;
	}
	c->rounds++;
	return pause_round(c, now_ms, random);
}

bool
choice_leave(struct choice *c, enum choice_why why)
{
	size_t first = following(c, c->own);

	if (!c->linked || first >= c->n ||
	    (why == CHOICE_HOMEWARD && first > c->own))
		return false;
	c->linked = false;
	c->was_cut = false;
	c->wants_home = false;
	c->leaving = true;
	c->leaving_why = why;
	c->at = first;
	return true;
}

bool
choice_wants_home(const struct choice *c)
{
	return c->wants_home;
}
