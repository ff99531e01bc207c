#include "service/limits/overload.h"

static uint64_t
threshold(enum overload_level level, uint64_t limit_ms)
{
	return level == OVERLOAD_NONE ? 0 : limit_ms << (level - 1);
}

static void
go_down(struct overload *o, uint64_t now_ms)
{
	if (o->calm_since_ms == 0) {
		o->calm_since_ms = now_ms;
		return;
	}
	if (now_ms - o->calm_since_ms < OVERLOAD_CALM_MS)
		return;
	o->level--;
	o->calm_since_ms = now_ms;
}

bool
overload_note(struct overload *o, uint64_t lag_ms, uint64_t limit_ms,
    uint64_t now_ms)
{
	enum overload_level before = o->level;

	o->lag_ms = lag_ms;
	if (limit_ms == 0)
		return false;
	if (o->level < OVERLOAD_INPUT &&
	    lag_ms >= threshold(o->level + 1, limit_ms)) {
		o->level++;
		o->times[o->level]++;
		o->calm_since_ms = 0;
	} else if (o->level > OVERLOAD_NONE &&
	    2 * lag_ms < threshold(o->level, limit_ms)) {
		go_down(o, now_ms);
	} else {
		o->calm_since_ms = 0;
	}
	return o->level != before;
}

bool
overload_skip_extra(struct overload *o)
{
	if (o->level < OVERLOAD_EXTRAS)
		return false;
	if (o->extras++ % OVERLOAD_KEEPS_ONE_OF == 0)
		return false;
	o->left_out++;
	return true;
}

const char *
overload_text(enum overload_level level)
{
	switch (level) {
	case OVERLOAD_NONE:
		return "no connection has to wait";
	case OVERLOAD_DOORS:
		return "new connections and handshakes wait";
	case OVERLOAD_EXTRAS:
		return "new connections and handshakes wait, statistics and "
		       "clock snapshots are thinned";
	case OVERLOAD_INPUT:
		return "new connections and handshakes wait, statistics and "
		       "clock snapshots are thinned, the connections that send "
		       "most are held back";
	}
	return "unknown";
}
