#include "client/command/command_line.h"

#include <stdio.h>
#include <string.h>

#include "transport/base/failure.h"

#define ERROR_BYTES 2048
#define ADDRESS_BYTES 1024

int
command_line_parse(struct command_line *line, const struct flags *f,
    void *options, int argc, char **argv)
{
	struct flags_words words = { .argc = argc, .argv = argv };
	enum flags_verdict verdict;
	char err[ERROR_BYTES];

	verdict = flags_parse(f, options, &words, err, sizeof(err));
	line->words = (const char *const *)words.argv;
	line->n_words = (size_t)words.argc;
	return flags_answer(f, verdict, err);
}

int
command_line_take_connect(void *options, const struct flag *flag,
    const char *value, char *err, size_t err_size)
{
	struct command_line *line = (void *)((char *)options + flag->at);

	if (line->n_connects == COMMAND_CONNECTS_MAX)
		return FAILURE(err, err_size, "--connect is there more than %u "
		    "times: write the collectors into a file, for --fleet",
		    COMMAND_CONNECTS_MAX);
	line->connects[line->n_connects++] = line->connect = value;
	return 0;
}

static int
parse(const struct command_line *line, const char *text, struct addr *out,
    char *err, size_t err_size)
{
	if (addr_parse(out, text, err, err_size) < 0)
		return -1;
	return dial_flags_check(&line->how, out, err, err_size);
}

int
command_line_producer(const struct command_line *line, struct addr *out,
    char *err, size_t err_size)
{
	char first[ADDRESS_BYTES];
	const char *text = addr_default_producer();

	/* The variable holds the list that a collector listens on. */
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(text, ","), text);
	return parse(line, line->connect != NULL ? line->connect : first, out,
	    err, err_size);
}

int
command_line_consumer(const struct command_line *line, struct addr *out,
    char *err, size_t err_size)
{
	return parse(line, line->connect != NULL ? line->connect :
	    addr_default_consumer(), out, err, err_size);
}
