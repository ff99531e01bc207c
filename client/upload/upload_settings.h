/*
 * upload_settings: the settings of tributary-upload
 * (protos/upload_settings.proto), checked, with defaults filled in.
 */
#ifndef CLIENT_UPLOAD_UPLOAD_SETTINGS_H
#define CLIENT_UPLOAD_UPLOAD_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "client/upload/s3/s3_place.h"
#include "transport/base/compiler.h"
#include "transport/base/log.h"

/* Room for any sentence about them. */
#define UPLOAD_ERROR_SIZE 1536

/* Strings are owned; NULL where left out. */
struct upload_settings {
	char *archive_dir;
	char *url;
	char *endpoint;
	char *region;
	char *credentials_file;
	char *ca_file;
	char *catalog;           /* shared; NULL: none */
	bool allow_plain_http;
	bool seccomp;
	uint32_t part_mb;
	uint32_t stall_s;
	uint64_t max_kb_per_s;   /* 0: no limit */
	uint64_t min_retry_ms;
	uint64_t max_retry_ms;
	uint64_t max_backlog_mb; /* 0: no limit */
	enum log_level log_level;
	struct s3_place place;   /* after upload_settings_check() */
};

void upload_settings_init(struct upload_settings *s);
void upload_settings_done(struct upload_settings *s);

/* Reads a file over what is there.  -1 with a sentence. */
int upload_settings_read(struct upload_settings *s, const char *file,
    char *err, size_t err_size) MUST_CHECK;
/* Replaces *slot by a copy of value.  -1: no memory, or value is empty. */
int upload_settings_set(char **slot, const char *value) MUST_CHECK;
/* After the last was read: all together, and place.  -1 with a sentence. */
int upload_settings_check(struct upload_settings *s, char *err,
    size_t err_size) MUST_CHECK;

#endif /* CLIENT_UPLOAD_UPLOAD_SETTINGS_H */
