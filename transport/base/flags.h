/*
 * flags: reads a command line by a table of its flags, for all our programs.
 *
 * Flags may stand between words, long names may be cut short, and "--" ends
 * them, as getopt_long() has it.  Not thread-safe.
 */
#ifndef TRANSPORT_BASE_FLAGS_H
#define TRANSPORT_BASE_FLAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

/* Flags of one table. */
#define FLAGS_MAX 64u

enum flag_kind {
	FLAG_BOOL,    /* sets the bool at `at` */
	FLAG_CHOICE,  /* sets the enum at `at` to id */
	FLAG_TEXT,    /* the const char * at `at` borrows the value */
	FLAG_NOTE,    /* has no value; take() is called with NULL */
	FLAG_VALUE,   /* take() is called with the value */
	FLAG_MAYBE,   /* --name or --name=value; without it take() gets NULL */
	FLAG_HELP,    /* ends the reading with FLAGS_HELP */
	FLAG_VERSION, /* ends the reading with FLAGS_VERSION */
	FLAG_ALIAS,   /* another name or letter of the flag in the line before */
};

enum flags_verdict {
	FLAGS_BAD = -1, /* err holds a sentence */
	FLAGS_RUN = 0,
	FLAGS_HELP,
	FLAGS_VERSION,
	FLAGS_NOTHING,  /* nothing to do; err says why, or is "" */
};

/* One line of a table, which a line without name ends. */
struct flag {
	const char *name; /* without dashes */
	enum flag_kind kind;
	char letter;      /* 'o' of -o; 0: none */
	size_t at;        /* offset in the options */
	/*
	 * value is borrowed from argv.  Returns an enum flags_verdict, so 0, or
	 * -1 with a sentence in err; all but 0 end the reading.
	 */
	int (*take)(void *options, const struct flag *flag, const char *value,
	    char *err, size_t err_size);
	int id; /* tells lines with the same take() or enum apart */
};

/* One program or command; static. */
struct flags {
	const struct flag *table;
	const char *speaker;    /* "tributary stop": whose messages they are */
	const char *help_is_at; /* "see tributary stop --help" */
	const char *help;
	const char *version;    /* "tributary 1.0"; NULL: there is no such flag */
	/* Said behind a wrong flag instead of the usual sentences, or NULL. */
	const char *no_such_flag;
	const char *no_value;
	int bad_status;         /* exit status for a wrong command line */
	bool flags_first;       /* the first word ends the flags */
};

/* The command line, with the program's name; then the words that are left. */
struct flags_words {
	int argc;
	char **argv;
	uint64_t given; /* bit i: the flag of line i of the table was given */
};

/*
 * Reorders argv, so that the words stand last.  options may have been changed
 * when this fails, too.
 */
enum flags_verdict flags_parse(const struct flags *f, void *options,
    struct flags_words *w, char *err, size_t err_size) MUST_CHECK;

/*
 * Prints help, version or error.  -1: go on; else the exit status.
 */
int flags_answer(const struct flags *f, enum flags_verdict verdict,
    const char *err) MUST_CHECK;

/* "tributary stop: text" to stderr; returns bad_status. */
int flags_refuse(const struct flags *f, const char *text);

#endif /* TRANSPORT_BASE_FLAGS_H */
