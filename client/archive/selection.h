/*
 * selection: which segments of an archive are meant, in the words of a command
 * line: find, fetch, export, rm and pin have the same.
 *
 *	struct find { struct selection select; ... };
 *	static const struct flag table[] = {
 *		SELECTION_FLAGS(offsetof(struct find, select)),
 *	...
 *	if (selection_settle(&o.select, now_ns, err, size) < 0 || ...
 *	    selection_run(&found, catalog, &o.select, 0, err, size) < 0)
 */
#ifndef CLIENT_ARCHIVE_SELECTION_H
#define CLIENT_ARCHIVE_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/archive/catalog.h"
#include "transport/base/compiler.h"
#include "transport/base/flags.h"

/* The archive, where neither --archive nor $TRIBUTARY_ARCHIVE names one. */
#define SELECTION_DEFAULT_FOLDER "/var/lib/tributary/archive"
/* A path, or the name of a shared catalogue. */
#define SELECTION_NAME_MAX 4096

/* The flags as given, all borrowed; NULL or false: not given. */
struct selection {
	const char *folder;    /* settled: NULL where catalog is not */
	const char *catalog;   /* postgresql://...: a shared one */
	const char *collector; /* of a shared one: a name or pattern */
	const char *machine, *recording;   /* names or patterns */
	const char *trigger, *process;     /* likewise */
	const char *at, *around, *from, *to;
	bool lost;
	/* Paths of segments, below the folder or not; no time is needed then. */
	const char *const *paths;
	size_t n_paths;
	/* By selection_settle(): CLOCK_REALTIME, both ends inside. */
	bool has_time;
	int64_t from_ns, to_ns;
	/* Likewise: the archive's name for people, which has no password in it. */
	char name[SELECTION_NAME_MAX];
};

/* Lines of a table of flags; base: the offset of a struct selection. */
#define SELECTION_FLAG(base, name, member)                                    \
	{ name, FLAG_TEXT, .at = (base) + offsetof(struct selection, member) }
#define SELECTION_FLAGS(base)                                                 \
	SELECTION_FLAG(base, "archive", folder),                              \
	SELECTION_FLAG(base, "catalog", catalog),                             \
	SELECTION_FLAG(base, "collector", collector),                         \
	SELECTION_FLAG(base, "at", at),                                       \
	SELECTION_FLAG(base, "around", around),                               \
	SELECTION_FLAG(base, "from", from),                                   \
	SELECTION_FLAG(base, "to", to),                                       \
	SELECTION_FLAG(base, "machine", machine),                             \
	SELECTION_FLAG(base, "recording", recording),                         \
	SELECTION_FLAG(base, "trigger", trigger),                             \
	SELECTION_FLAG(base, "process", process),                             \
	{ "lost", FLAG_BOOL,                                                  \
	    .at = (base) + offsetof(struct selection, lost) }

/* Lines of --help. */
#define SELECTION_HELP                                                        \
    "      --at TIME     around this time: 14:32 (the last time that it was\n"  \
    "                    so), \"yesterday 14:32\", \"2026-11-23 14:32:10\",\n"  \
    "                    2026-11-23T14:32:10Z, -2h; local time, unless it\n"    \
    "                    says its zone\n"                                       \
    "      --around SPAN how far around it; default: 30s\n"                     \
    "      --from TIME, --to TIME\n"                                            \
    "                    between these times; one of them is enough\n"          \
    "      --machine NAME, --recording NAME, --trigger NAME\n"                  \
    "                    with this one in them: a name, or a pattern\n"         \
    "                    (\"kiosk-*\")\n"                                       \
    "      --process NAME\n"                                                    \
    "                    with this process: as it calls itself, the last\n"     \
    "                    part of its path, or a pattern\n"                      \
    "      --lost        that lost something\n"                                 \
    "      --archive DIR the archive; default: $TRIBUTARY_ARCHIVE, else\n"      \
    "                    " SELECTION_DEFAULT_FOLDER "\n"                      \
    "      --catalog postgresql://USER@HOST/DATABASE\n"                        \
    "                    instead of a folder, the catalogue of what several\n" \
    "                    collectors have in one store; default:\n"             \
    "                    $TRIBUTARY_CATALOG, where no folder is named; the\n"  \
    "                    password is in ~/.pgpass\n"
/* Lines of --help of those that show a shared catalogue's segments. */
#define SELECTION_COLLECTOR_HELP                                              \
    "      --collector NAME\n"                                                 \
    "                    in such a catalogue: of this collector\n"

/*
 * Reads the times, and fills the folder in.  -1 with a sentence: a time that is
 * none, or words that do not go together.
 */
int selection_settle(struct selection *s, int64_t now_ns, char *err,
    size_t err_size) MUST_CHECK;
/* Opens its catalogue for reading, once it is settled.  NULL with a sentence. */
struct catalog *selection_open(const struct selection *s, char *err,
    size_t err_size) MUST_CHECK;
/* Whether it says anything but the folder: else all segments are meant. */
bool selection_is_set(const struct selection *s);

/* Rows of `segments`, the newest first. */
struct selection_found {
	int64_t *ids; /* owned */
	size_t n;
};

/*
 * Finds at most limit segments (0: all).  A path that is in no row is a
 * failure: -1 with a sentence; nothing found is none.
 */
int selection_run(struct selection_found *out, struct catalog *c,
    const struct selection *s, size_t limit, char *err, size_t err_size)
    MUST_CHECK;
/* A zero-initialised one is fine. */
void selection_found_done(struct selection_found *f);

/* Calls fn for the row of each, in order, as catalog_each(). */
int selection_each(struct catalog *c, const struct selection_found *f,
    catalog_row_fn fn, void *arg, char *err, size_t err_size) MUST_CHECK;

/*
 * Finds the segments next to the selection's time, of all others that it asks
 * for: out[0] the last one before it, out[1] the first one behind it; 0: there
 * is none.
 */
int selection_nearest(int64_t out[2], struct catalog *c,
    const struct selection *s, char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_ARCHIVE_SELECTION_H */
