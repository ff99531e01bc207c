/*
 * upload_options: the command line of tributary-upload.  No flag takes a key:
 * every user of a machine can see command lines.
 */
#ifndef CLIENT_UPLOAD_UPLOAD_OPTIONS_H
#define CLIENT_UPLOAD_UPLOAD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "client/upload/upload_settings.h"
#include "transport/base/compiler.h"
#include "transport/base/flags.h"

enum upload_command {
	UPLOAD_SERVE,
	UPLOAD_ONCE,         /* what is there, and no more */
	UPLOAD_CHECK,
	UPLOAD_STATUS,
	UPLOAD_GET,
	UPLOAD_DESCRIPTIONS,
};

/* All borrowed from argv; NULL: not given. */
struct upload_options {
	enum upload_command command;
	const char *config;
	const char *archive_dir;
	const char *url;
	const char *endpoint;
	const char *catalog;
	const char *region;
	const char *credentials_file;
	const char *log_level;
	const char *get;    /* the URL of an object */
	const char *sha256; /* what its bytes must have, in hex */
	const char *file;   /* where it goes; "-": standard output */
	bool json;
};

extern const struct flags upload_flags;

enum flags_verdict upload_options_parse(struct upload_options *o, int argc,
    char **argv, char *err, size_t err_size) MUST_CHECK;

/*
 * Initialises *s by the file and the flags, and checks it.  -1 with a sentence;
 * *s is then done.
 */
int upload_options_settings(const struct upload_options *o,
    struct upload_settings *s, char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_UPLOAD_UPLOAD_OPTIONS_H */
