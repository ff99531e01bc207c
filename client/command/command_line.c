#include "client/command/command_line.h"

#define ERROR_BYTES 2048

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
command_line_consumer(const struct command_line *line, struct addr *out,
    char *err, size_t err_size)
{
	const char *text = line->connect != NULL ? line->connect :
	    addr_default_consumer();

	if (addr_parse(out, text, err, err_size) < 0)
		return -1;
	return dial_flags_check(&line->how, out, err, err_size);
}
