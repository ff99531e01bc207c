/* options: the command line of `tributary archive`.  Pure. */
#ifndef CLIENT_ARCHIVE_COMMAND_OPTIONS_H
#define CLIENT_ARCHIVE_COMMAND_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/archive/selection.h"
#include "transport/base/compiler.h"
#include "transport/base/flags.h"

enum archive_action {
	ARCHIVE_REINDEX,
	ARCHIVE_VERIFY,
	ARCHIVE_USAGE,
	ARCHIVE_PIN,
	ARCHIVE_UNPIN,
	ARCHIVE_REMOVE,
	ARCHIVE_EXPORT,
};

struct archive_options {
	enum archive_action action;
	struct selection select; /* settled */
	const char *out; /* NULL: not given */
	bool full, json;
	const char *from;     /* reindex: "s3://bucket/prefix"; NULL: of the files */
	const char *settings; /* of tributary-upload */
};

extern const struct flags archive_options_flags;

/* out borrows from argv; it is set with FLAGS_RUN only. */
enum flags_verdict archive_options_parse(struct archive_options *out,
    int argc, char **argv, int64_t now_ns, char *err, size_t err_size)
    MUST_CHECK;

#endif /* CLIENT_ARCHIVE_COMMAND_OPTIONS_H */
