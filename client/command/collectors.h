/*
 * collectors: which collectors a command is for: one, or those of a fleet
 * (--fleet FILE, or several --connect), and how each is reached.
 */
#ifndef CLIENT_COMMAND_COLLECTORS_H
#define CLIENT_COMMAND_COLLECTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/connect/dial.h"
#include "transport/socket/addr.h"

struct Tributary__Fleet;
struct command_line;

/* Collectors of a fleet. */
#define COLLECTORS_MAX 256u
/* Longest name of a collector, in bytes. */
#define COLLECTOR_NAME_MAX 64u
/* Time-out of a collector where nothing says otherwise. */
#define COLLECTOR_TIMEOUT_MS 30000u

/* One end of a collector. */
struct collector_end {
	const char *text; /* the address as given; NULL: the file has none */
	struct addr addr;
	struct dial_options how;
};

struct collector {
	const char *name; /* NULL: the only collector, without a name */
	struct collector_end consumer;
	struct collector_end producer;
	uint32_t timeout_ms;
};

/* Owned by collectors_done(); strings also borrow from the command line. */
struct collectors {
	struct Tributary__Fleet *file; /* NULL: no --fleet */
	struct collector *list;        /* at least one */
	size_t n;
	const char *const *fleet_triggers; /* borrowed from file */
	size_t n_fleet_triggers;
};

/*
 * Reads FILE of --fleet; how: what of it the file does not say.  -1 with a
 * sentence, that has file and line where a line is wrong.
 */
int collectors_read(struct collectors *c, const char *file,
    const struct dial_options *how, char *err, size_t err_size) MUST_CHECK;
/*
 * Sets the collectors of --fleet, of several --connect, or the one of --connect
 * or of its default.  line->how.service says which end each --connect is for.
 */
int collectors_of_line(struct collectors *c, const struct command_line *line,
    char *err, size_t err_size) MUST_CHECK;
/* After a failure, too. */
void collectors_done(struct collectors *c);

/*
 * Refuses a fleet in which a collector has no consumer socket, or no producer
 * socket.  -1 with a sentence that names the collector.
 */
int collectors_want_consumers(const struct collectors *c, char *err,
    size_t err_size) MUST_CHECK;
int collectors_want_producers(const struct collectors *c, char *err,
    size_t err_size) MUST_CHECK;

/*
 * Meaning of the word at this collector: "c2/robots" is "robots" at c2 and
 * nothing elsewhere (NULL); any other word stays as it is.
 */
const char *collectors_word(const struct collectors *c, size_t i,
    const char *word);

#endif /* CLIENT_COMMAND_COLLECTORS_H */
