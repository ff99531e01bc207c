/*
 * choice: the collector, of several, that a relay connects to, and the time at
 * which it goes to another.  Pure: time and chance are arguments.
 *
 * Collectors stand in the order that placement.h gives for the machine; the
 * first is its home.  A relay stays with its own collector as long as that
 * lives: after a cut it tries that one alone, with backoff, until it has been
 * gone for move_after_ms times a factor of 1 to 2, which chance chooses at the
 * cut, so that relays of a dead collector arrive at the others over some time.
 * From then on, and at the start, when there is no collector to stay with,
 * attempts go round: the relay's own collector, then the others in order,
 * without a pause; then the backoff, and round again.  A collector that answers
 * is the relay's own from then on.
 *
 * With a single collector there is only the backoff.
 */
#ifndef RELAY_UPLINK_CHOICE_H
#define RELAY_UPLINK_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/connect/placement.h"

/* Time that an attempt may take; less, where others can be tried instead. */
#define CHOICE_PATIENCE_MS       40000u
#define CHOICE_FIRST_PATIENCE_MS 10000u

/* Reason why the relay is with its collector. */
enum choice_why {
	CHOICE_HOME,      /* it is there since the start */
	CHOICE_HOME_DOWN, /* home did not answer at the start */
	CHOICE_GONE,      /* the collector before was gone for too long */
	CHOICE_ASKED,     /* the collector before asked to be left */
	CHOICE_HOMEWARD,  /* it is home, or nearer to it */
};
/* As what follows "because"; "": CHOICE_HOME. */
const char *choice_why_text(enum choice_why why);

struct choice_times {
	uint64_t move_after_ms;
	uint64_t min_retry_ms; /* of the backoff */
	uint64_t max_retry_ms;
};

/* Embedded by its owner; ranks are places in order[], 0 being home. */
struct choice {
	struct choice_times times;
	size_t n;
	size_t order[PLACEMENT_MAX]; /* places in the owner's list */
	size_t at;         /* rank of the one that is tried, or linked to */
	size_t own;        /* rank of the last link's; CHOICE_NONE */
	bool linked;
	bool was_cut;      /* the next link follows a cut */
	bool wants_home;   /* see choice_wants_home() */
	bool leaving;      /* others are tried, for the reason that follows */
	enum choice_why leaving_why;
	uint64_t cut_ms;   /* of the last link's end */
	uint64_t move_ms;  /* when own has been gone for too long */
	unsigned failures; /* in a row, for the backoff */
	unsigned rounds;   /* that all did not answer in */
	enum choice_why why;
	uint64_t moves;
	uint64_t moved_ms; /* of the last */
};
#define CHOICE_NONE SIZE_MAX

/*
 * Copies times; collectors are names for placement_order() alone.  -1 with its
 * sentence in err.
 */
int choice_init(struct choice *c, const char *machine,
    const char *const *collectors, size_t n, const struct choice_times *times,
    char *err, size_t err_size) MUST_CHECK;

/*
 * At the start: a relay before this one was linked to the collector at this
 * place of the list, which is stayed with as after a cut.  random: any number of
 * 32 bits.
 */
void choice_begin_at(struct choice *c, size_t place, uint64_t now_ms,
    uint32_t random);
/* The place in the list of the collector to try, or that is linked to. */
size_t choice_place(const struct choice *c);
/* Home's place in the list. */
size_t choice_home(const struct choice *c);
/* Time after which an attempt with it is given up. */
uint64_t choice_patience_ms(const struct choice *c);

/* The attempt has succeeded. */
void choice_linked(struct choice *c, uint64_t now_ms);
/*
 * An attempt, or the link, has ended; another collector may be the one to try.
 * good: the link was of use.  Returns the pause before the next attempt.
 * random: any number of 32 bits.
 */
uint64_t choice_ended(struct choice *c, bool good, uint64_t now_ms,
    uint32_t random);

/*
 * Leaves the collector that is linked to, which the caller disconnects from:
 * the others are tried in order, each once, then that one again.  With
 * CHOICE_HOMEWARD only those that stand before it in the order.  false: there
 * is no other, or no link, and nothing has changed.
 */
bool choice_leave(struct choice *c, enum choice_why why);
/*
 * Whether the relay ought to leave for home: linked again to another collector
 * after a cut, and not been sent off since.
 */
bool choice_wants_home(const struct choice *c);

#endif /* RELAY_UPLINK_CHOICE_H */
