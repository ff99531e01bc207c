/*
 * command_line: flags that all commands for a collector have: help, and the way
 * to the collector.
 */
#ifndef CLIENT_COMMAND_COMMAND_LINE_H
#define CLIENT_COMMAND_COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"
#include "transport/base/flags.h"
#include "transport/connect/dial.h"
#include "transport/connect/dial_flags.h"
#include "transport/socket/addr.h"

enum { COMMAND_OK = 0, COMMAND_FAILED = 1 };

/* Form of a list that a command prints. */
enum list_form {
	LIST_TABLE, /* a line each */
	LIST_LONG,  /* everything, a block each */
	LIST_JSON,
};

/* Several --connect on one command line. */
#define COMMAND_CONNECTS_MAX 64u

/* `tributary NAME`, as a struct flags. */
#define COMMAND(name, its_table, its_help)                                    \
	{ .table = (its_table), .speaker = "tributary " name,                 \
	    .help_is_at = "see tributary " name " --help",                    \
	    .help = (its_help), .bad_status = COMMAND_FAILED }

/* Lines of a table of flags; base: the offset of a struct command_line. */
#define COMMAND_FLAGS(base)                                                   \
	{ "help", FLAG_HELP, .letter = 'h' },                                 \
	{ "connect", FLAG_TEXT,                                               \
	    .at = (base) + offsetof(struct command_line, connect) },          \
	DIAL_FLAGS((base) + offsetof(struct command_line, how))

/* As COMMAND_FLAGS, of commands that ask several collectors at once. */
#define COMMAND_FLEET_FLAGS(base)                                             \
	{ "help", FLAG_HELP, .letter = 'h' },                                 \
	{ "connect", FLAG_VALUE, .take = command_line_take_connect,           \
	    .at = (base) },                                                   \
	{ "fleet", FLAG_TEXT,                                                 \
	    .at = (base) + offsetof(struct command_line, fleet) },            \
	{ "allow-missing", FLAG_BOOL,                                         \
	    .at = (base) + offsetof(struct command_line, allow_missing) },    \
	DIAL_FLAGS((base) + offsetof(struct command_line, how))

/* Lines of a table of flags that choose the form, an enum list_form at `at`. */
#define COMMAND_FLAG_LONG(offset)                                             \
	{ "long", FLAG_CHOICE, .letter = 'l', .at = (offset), .id = LIST_LONG }
#define COMMAND_FLAG_JSON(offset)                                             \
	{ "json", FLAG_CHOICE, .at = (offset), .id = LIST_JSON }

/* Lines of --help: --connect of consumers, and flags of all commands. */
#define COMMAND_CONSUMER_HELP                                                 \
    "      --connect ADDR  the collector's consumer socket; default:\n"      \
    "                    $PERFETTO_CONSUMER_SOCK_NAME, else\n"               \
    "                    /run/perfetto/traced-consumer.sock, else\n"         \
    "                    /tmp/perfetto-consumer; also tls://host:port,\n"    \
    "                    ssh://host and others, as for tributary record\n"   \
    COMMAND_DIAL_HELP
#define COMMAND_FLEET_HELP                                                    \
    "      --fleet FILE  all collectors of the file, at once; several --connect\n" \
    "                    do the same\n"                                      \
    "      --allow-missing  a collector that does not answer is named, and no\n" \
    "                    error\n"
#define COMMAND_DIAL_HELP                                                     \
    "      --tls-dir DIR, --tls-name NAME, --sni-machine, --allow-tls-1.2,\n"  \
    "      --ssh-command CMD\n"                                               \
    "                    see tributary record --help\n"                      \
    "  -h, --help        print this\n"

/* The command line as given; everything is borrowed from argv. */
struct command_line {
	const char *connect; /* NULL: the default */
	const char *fleet;   /* the file; NULL: none */
	bool allow_missing;
	/* Every --connect of COMMAND_FLEET_FLAGS; connect is the last. */
	const char *connects[COMMAND_CONNECTS_MAX];
	size_t n_connects;
	struct dial_options how;
	const char *const *words;
	size_t n_words;
};

/*
 * Reads a command's flags into options, of which line may be a member, and the
 * words into line.  -1: go on; else the exit status: help or an error was
 * printed.
 */
int command_line_parse(struct command_line *line, const struct flags *f,
    void *options, int argc, char **argv) MUST_CHECK;

/* Takes a value of --connect; flag->at is that of the struct command_line. */
int command_line_take_connect(void *options, const struct flag *flag,
    const char *value, char *err, size_t err_size);

/* Set the address of the collector's port.  -1 with a sentence. */
int command_line_producer(const struct command_line *line, struct addr *out,
    char *err, size_t err_size) MUST_CHECK;
int command_line_consumer(const struct command_line *line, struct addr *out,
    char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_COMMAND_COMMAND_LINE_H */
