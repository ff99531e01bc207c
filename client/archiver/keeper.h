/*
 * keeper: the thread that has the catalogue of an archive: it compares files
 * with rows, and deletes segments by the policy.
 *
 * What it is told are hints; it looks at the files itself.  A file goes before
 * its row, and a row without a file is put right by the next look at the folder:
 * so a crash at any point leaves, after the next start, the catalogue that
 * `tributary archive reindex` makes of the folder.
 */
#ifndef CLIENT_ARCHIVER_KEEPER_H
#define CLIENT_ARCHIVER_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/archiver/retention/retention.h"
#include "transport/base/compiler.h"

struct archiver_settings;
struct keeper;

/* Limits that cannot be kept; there is room for so many of them. */
#define KEEPER_EXCESSES_MAX 8u
#define KEEPER_NAME_MAX     256

/* By scope, and of each of them by bytes and by age. */
#define KEEPER_CAUSES (2u * (RETENTION_DISK + 1u))

struct keeper_deletions {
	uint64_t segments;
	uint64_t bytes;
};

/* A moment's copy, for the status. */
struct keeper_view {
	uint64_t segments, bytes, pinned, waiting;
	uint64_t free, min_free;
	uint64_t catalogued, forgotten, recovered, failures;
	struct keeper_deletions deleted[KEEPER_CAUSES];
	char excesses[KEEPER_EXCESSES_MAX][RETENTION_TEXT_MAX];
	size_t n_excesses;
	char next[RETENTION_NEXT_MAX][KEEPER_NAME_MAX];
	size_t n_next;
	char failure[512]; /* the last; "" */
};
/* Word for the place of a deletion in the view: "machine size"; static. */
const char *keeper_cause_text(size_t cause);

/*
 * Opens the catalogue of a folder, and makes it where there is none.  fd: of
 * the folder; settings are copied, but for their rules, which are taken.  NULL
 * with a sentence.
 */
struct keeper *keeper_new(int fd, struct archiver_settings *settings,
    char *err, size_t err_size) MUST_CHECK;
/* Ends the thread first, after the file that it is at. */
void keeper_free(struct keeper *k);

/* Starts the thread, which looks at all of the folder at first.  -1: errno. */
int keeper_start(struct keeper *k) MUST_CHECK;

/* From any thread: a path may have changed. */
void keeper_look(struct keeper *k, const char *path, bool is_folder);
/* Other settings, which are taken; the folder stays as it was. */
void keeper_set(struct keeper *k, struct archiver_settings *settings);
/* Number of paths that wait to be looked at. */
size_t keeper_waiting(struct keeper *k);
void keeper_view(struct keeper *k, struct keeper_view *out);

#endif /* CLIENT_ARCHIVER_KEEPER_H */
