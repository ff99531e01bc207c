/*
 * command_line: what the commands that go to a collector have in common: how
 * their flags are read, what is said of wrong ones, and where the collector is.
 */
#ifndef CLIENT_COMMAND_COMMAND_LINE_H
#define CLIENT_COMMAND_COMMAND_LINE_H

#include <stddef.h>

#include "transport/base/compiler.h"
#include "transport/connect/dial.h"
#include "transport/connect/dial_flags.h"
#include "transport/socket/addr.h"

struct option;

enum { COMMAND_OK = 0, COMMAND_FAILED = 1 };

/* What getopt_long() returns; a command's own long flags begin at _OWN. */
enum { COMMAND_FLAG_CONNECT = 1000, COMMAND_FLAG_OWN };

/* Lines of a table of long options that all have. */
#define COMMAND_FLAGS_LONG                                                    \
	{ "help", no_argument, NULL, 'h' },                                   \
	{ "connect", required_argument, NULL, COMMAND_FLAG_CONNECT },         \
	DIAL_FLAGS_LONG

/* Of their help: where a consumer's collector is, and the lines of all. */
#define COMMAND_CONSUMER_HELP                                                 \
    "      --connect ADDR  the collector's consumer socket; default:\n"      \
    "                    $PERFETTO_CONSUMER_SOCK_NAME, else\n"               \
    "                    /run/perfetto/traced-consumer.sock, else\n"         \
    "                    /tmp/perfetto-consumer; also tls://host:port,\n"    \
    "                    ssh://host and others, as for tributary record\n"   \
    COMMAND_DIAL_HELP
#define COMMAND_DIAL_HELP                                                     \
    "      --tls-dir DIR, --tls-name NAME, --allow-tls-1.2, --ssh-command CMD\n" \
    "                    see tributary record --help\n"                      \
    "  -h, --help        print this\n"

/* One command; static. */
struct command {
	const char *name;           /* "stop" */
	const char *help;
	const struct option *flags;
	const char *short_flags;    /* for getopt: ":hl" */
	/* Takes a flag of its own.  -1 with a sentence.  NULL: has none. */
	int (*take)(void *arg, int flag, const char *value, char *err,
	    size_t err_size);
};

/* As it was given; everything is borrowed from argv. */
struct command_line {
	const char *connect; /* NULL: the default */
	struct dial_options how;
	const char *const *words;
	size_t n_words;
};

/* "tributary stop: text"; returns COMMAND_FAILED. */
int command_refuse(const struct command *c, const char *text);

/*
 * Fills line (how.service stays as it is) and calls take(arg, ...).  -1: go on;
 * else the exit status: help was printed, or it was said what is wrong.
 */
int command_line_parse(struct command_line *line, const struct command *c,
    void *arg, int argc, char **argv) MUST_CHECK;

/* Where the consumer's collector is.  -1 with a sentence. */
int command_line_consumer(const struct command_line *line, struct addr *out,
    char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_COMMAND_COMMAND_LINE_H */
