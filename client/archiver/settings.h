/*
 * settings: the settings of the archiver (protos/archive_settings.proto),
 * checked.
 */
#ifndef CLIENT_ARCHIVER_SETTINGS_H
#define CLIENT_ARCHIVER_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

#include "client/archiver/retention/retention.h"
#include "transport/base/compiler.h"
#include "transport/base/log.h"

#define ARCHIVER_ERROR_SIZE 1536

struct archiver_settings {
	char *folder; /* owned; NULL: not said */
	struct retention_policy policy;
	struct retention_rule *rules; /* owned, their patterns too; policy's */
	uint64_t rescan_ms;
	enum log_level log_level;
};

void archiver_settings_init(struct archiver_settings *s);
void archiver_settings_done(struct archiver_settings *s);

/* Reads a file into settings of archiver_settings_init().  -1 with a sentence. */
int archiver_settings_read(struct archiver_settings *s, const char *file,
    char *err, size_t err_size) MUST_CHECK;

/* -1: no memory. */
int archiver_settings_set_folder(struct archiver_settings *s,
    const char *folder) MUST_CHECK;

#endif /* CLIENT_ARCHIVER_SETTINGS_H */
