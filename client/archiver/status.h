/*
 * status: the report of an archiver, made by it and shown by `--status`.
 */
#ifndef CLIENT_ARCHIVER_STATUS_H
#define CLIENT_ARCHIVER_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

struct keeper_view;

/* Facts of a report beside the keeper's. */
struct status_facts {
	const char *folder;
	uint64_t running_ms;
	uint64_t to_look_at;
	uint64_t unwatched;
};

/* Writes an ArchiverReport; returns its length, 0 when it does not fit. */
size_t status_make(const struct status_facts *facts,
    const struct keeper_view *view, uint8_t *buf, size_t size);

/* `--status`: the exit status; failures are printed on standard error. */
int status_show(const char *folder, bool json) MUST_CHECK;

#endif /* CLIENT_ARCHIVER_STATUS_H */
