#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "client/archive/catalog.h"
#include "client/archive/catalog_internal.h"
#include "transport/base/failure.h"

/* Each database of its own page cache; a million segments are 1.5 GB. */
#define SETTINGS                                                              \
	"PRAGMA foreign_keys = ON;"                                           \
	"PRAGMA synchronous = NORMAL;"                                        \
	"PRAGMA cache_size = -16384;"                                         \
	"PRAGMA temp_store = MEMORY;"                                         \
	"PRAGMA trusted_schema = OFF;"                                        \
	"PRAGMA journal_size_limit = 4194304;"

/* sql: static, with one number as its answer. */
static int
read_number(struct catalog *c, const char *sql, int64_t *out, char *err,
    size_t err_size)
{
	struct catalog_statement *s;
	int rc;

	s = catalog_prepare(c, sql, err, err_size);
	if (s == NULL || (rc = catalog_step(c, s, err, err_size)) < 0)
		return -1;
	*out = rc == 1 ? catalog_int(s, 0) : 0;
	catalog_reset(s);
	return 0;
}

static int
check_version(struct catalog *c, char *err, size_t err_size)
{
	int64_t id, version;

	if (read_number(c, "PRAGMA application_id", &id, err, err_size) < 0 ||
	    read_number(c, "PRAGMA user_version", &version, err, err_size) < 0)
		return -1;
	/* Anything may be called so: another program's database has its own. */
	if (id != CATALOG_APPLICATION)
		return FAILURE(err, err_size, "%s is no catalogue of "
		    "Tributary's: tributary archive reindex --full replaces "
		    "it", c->file);
	if (version > CATALOG_VERSION)
		return FAILURE(err, err_size, "%s was made by a newer version "
		    "of Tributary (%lld; this one knows %d): update, or let "
		    "tributary archive reindex --full make it anew", c->file,
		    (long long)version, CATALOG_VERSION);
	if (version < CATALOG_VERSION)
		return FAILURE(err, err_size, "%s was made by an older version "
		    "of Tributary: tributary archive reindex --full makes it "
		    "anew", c->file);
	return 0;
}

static int
open_database(struct catalog *c, int flags, char *err, size_t err_size)
{
	if (sqlite3_open_v2(c->file, &c->db, flags | SQLITE_OPEN_NOMUTEX,
	    NULL) != SQLITE_OK)
		return c->db == NULL ? FAILURE(err, err_size, "out of memory") :
		    catalog_failed(c, err, err_size);
	sqlite3_busy_timeout(c->db, CATALOG_BUSY_MS);
	if (catalog_add_functions(c, err, err_size) < 0)
		return -1;
	return catalog_execute(c, SETTINGS, err, err_size);
}

static int
fill(struct catalog *c, char *err, size_t err_size)
{
	char last[96];

	snprintf(last, sizeof(last),
	    "PRAGMA application_id = %d; PRAGMA user_version = %d;",
	    CATALOG_APPLICATION, CATALOG_VERSION);
	if (open_database(c, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err,
	    err_size) < 0)
		return -1;
	if (catalog_execute(c, "PRAGMA journal_mode = WAL", err, err_size) < 0)
		return -1;
	if (catalog_execute(c, catalog_schema, err, err_size) < 0)
		return -1;
	return catalog_execute(c, last, err, err_size);
}

/*
 * Makes an empty catalogue under another name and links it, so that one half
 * made is never opened.  Another process may be first, which is as good.
 */
static int
make_database(const char *folder, const char *file, char *err, size_t err_size)
{
	struct catalog made = { .engine = &catalog_sqlite, .folder = -1 };
	int rc = -1;

	if (asprintf(&made.file, "%s/.%s.%d", folder, CATALOG_FILE,
	    (int)getpid()) < 0)
		return FAILURE(err, err_size, "out of memory");
	/* A process of this number may have been killed here. */
	(void)unlink(made.file);
	rc = fill(&made, err, err_size);
	sqlite3_finalize(made.kept[0].of);
	sqlite3_close(made.db);
	if (rc == 0 && link(made.file, file) < 0 && errno != EEXIST)
		rc = FAILURE(err, err_size, "cannot make %s: %s", file,
		    strerror(errno));
	(void)unlink(made.file);
	free(made.file);
	return rc;
}

/*
 * Removes a journal whose catalogue was deleted: a new one would take it for
 * its own.  No process has them open, or makes one, while the folder is locked.
 */
static void
drop_orphans(int folder)
{
	if (faccessat(folder, CATALOG_FILE, F_OK, 0) == 0 ||
	    faccessat(folder, CATALOG_FILE "-wal", F_OK, 0) < 0 ||
	    flock(folder, LOCK_EX | LOCK_NB) < 0)
		return;
	if (faccessat(folder, CATALOG_FILE, F_OK, 0) < 0) {
		(void)unlinkat(folder, CATALOG_FILE "-wal", 0);
		(void)unlinkat(folder, CATALOG_FILE "-shm", 0);
	}
	(void)flock(folder, LOCK_UN);
}

/*
 * Keeps -wal (empty) and -shm when the last process closes the catalogue:
 * without them, a user who may only read the folder cannot read it.
 */
static void
keep_journal(struct catalog *c)
{
	int on = 1;

	(void)sqlite3_file_control(c->db, "main", SQLITE_FCNTL_PERSIST_WAL,
	    &on);
}

/* Opens the folder's catalogue, which is made where it is to be written. */
static int
open_file(struct catalog *c, const char *folder, enum catalog_mode mode,
    char *err, size_t err_size)
{
	int flags = SQLITE_OPEN_READWRITE;

	if (access(c->file, F_OK) < 0) {
		if (mode == CATALOG_READ)
			return FAILURE(err, err_size, "%s does not exist: "
			    "tributary archive reindex makes it from the "
			    "segments", c->file);
		if (make_database(folder, c->file, err, err_size) < 0)
			return -1;
	}
	/*
	 * Readers of WAL need its -shm file; a reader that may not write gets
	 * along with one that is there.
	 */
	if (mode == CATALOG_READ && access(c->file, W_OK) < 0)
		flags = SQLITE_OPEN_READONLY;
	if (open_database(c, flags, err, err_size) < 0)
		return -1;
	keep_journal(c);
	return check_version(c, err, err_size);
}

/* Returns the descriptor; -1 with a sentence. */
static int
open_folder(const char *folder, char *err, size_t err_size)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	if (errno == ENOENT)
		return FAILURE(err, err_size, "there is no archive %s: name "
		    "its folder with --archive, or make it", folder);
	return FAILURE(err, err_size, "cannot open the archive %s: %s", folder,
	    strerror(errno));
}

struct catalog *
catalog_open(const char *folder, enum catalog_mode mode, char *err,
    size_t err_size)
{
	struct catalog *c;

	if ((c = calloc(1, sizeof(*c))) == NULL) {
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	c->engine = &catalog_sqlite;
	if ((c->folder = open_folder(folder, err, err_size)) < 0)
		goto fail;
	if (mode == CATALOG_WRITE)
		drop_orphans(c->folder);
	if (flock(c->folder, LOCK_SH) < 0 ||
	    asprintf(&c->file, "%s/%s", folder, CATALOG_FILE) < 0) {
		c->file = NULL;
		snprintf(err, err_size, "cannot lock %s: %s", folder,
		    strerror(errno));
		goto fail;
	}
	if (open_file(c, folder, mode, err, err_size) < 0)
		goto fail;
	return c;

fail:
	catalog_close(c);
	return NULL;
}

struct catalog *
catalog_scratch(char *err, size_t err_size)
{
	struct catalog *c = calloc(1, sizeof(*c));

	if (c == NULL || (c->file = strdup(":memory:")) == NULL) {
		free(c);
		snprintf(err, err_size, "out of memory");
		return NULL;
	}
	c->engine = &catalog_sqlite;
	c->folder = -1;
	if (open_database(c, SQLITE_OPEN_READWRITE, err, err_size) == 0 &&
	    catalog_execute(c, catalog_schema, err, err_size) == 0)
		return c;
	catalog_close(c);
	return NULL;
}

int
catalog_destroy(const char *folder, char *err, size_t err_size)
{
	static const char *const files[] = {
		CATALOG_FILE, CATALOG_FILE "-wal", CATALOG_FILE "-shm" };
	int fd, rc = 0;
	size_t i;

	if ((fd = open_folder(folder, err, err_size)) < 0)
		return -1;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		rc = FAILURE(err, err_size, "%s/%s is in use: stop those that "
		    "have it open (fuser -v %s/%s), then try again", folder,
		    CATALOG_FILE, folder, CATALOG_FILE);
	for (i = 0; rc == 0 && i < sizeof(files) / sizeof(files[0]); i++) {
		if (unlinkat(fd, files[i], 0) < 0 && errno != ENOENT)
			rc = FAILURE(err, err_size, "cannot remove %s/%s: %s",
			    folder, files[i], strerror(errno));
	}
	close(fd);
	return rc;
}
