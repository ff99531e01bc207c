/*
 * actions: the commands of `tributary archive`, each with an archive that is
 * open.  They print to stdout, and what went wrong to stderr.
 */
#ifndef CLIENT_ARCHIVE_COMMAND_ACTIONS_H
#define CLIENT_ARCHIVE_COMMAND_ACTIONS_H

#include "client/archive/command/options.h"
#include "transport/base/compiler.h"

struct catalog;

enum { ARCHIVE_DONE = 0, ARCHIVE_NOT_DONE = 1, ARCHIVE_WRONG = 2 };

#define ARCHIVE_ERROR_SIZE 1024

struct archive_open {
	const struct archive_options *options;
	struct catalog *catalog;
	/* reindex into a shared one: it; catalog is then a scratch one. */
	struct catalog *shared;
	int folder; /* descriptor; -1: of a shared catalogue */
};

/* Exit statuses. */
int archive_reindex(const struct archive_open *a) MUST_CHECK;
int archive_reindex_from(const struct archive_open *a) MUST_CHECK;
int archive_verify(const struct archive_open *a) MUST_CHECK;
int archive_usage(const struct archive_open *a) MUST_CHECK;
int archive_pin(const struct archive_open *a, bool pinned) MUST_CHECK;
int archive_remove(const struct archive_open *a) MUST_CHECK;
int archive_export(const struct archive_open *a) MUST_CHECK;

/* "tributary archive: text" to stderr; returns ARCHIVE_NOT_DONE. */
int archive_refuse(const char *text);

#endif /* CLIENT_ARCHIVE_COMMAND_ACTIONS_H */
