/*
 * options: the command line of tributary-archiver.
 */
#ifndef CLIENT_ARCHIVER_OPTIONS_H
#define CLIENT_ARCHIVER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "client/archiver/settings.h"
#include "transport/base/compiler.h"
#include "transport/base/flags.h"

struct archiver_options {
	const char *archive;   /* NULL: not given, as below */
	const char *config;
	const char *log_level;
	bool check;
	bool status;
	bool json;
};

extern const struct flags archiver_flags;

enum flags_verdict archiver_options_parse(struct archiver_options *o, int argc,
    char **argv, char *err, size_t err_size) MUST_CHECK;

/*
 * Initialises *s by the file and the flags.  -1 with a sentence; *s is then
 * done.
 */
int archiver_options_settings(const struct archiver_options *o,
    struct archiver_settings *s, char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_ARCHIVER_OPTIONS_H */
