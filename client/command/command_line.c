#include "client/command/command_line.h"

#include <getopt.h>
#include <stdio.h>

#include "protos/plain_text.h"
#include "transport/base/unknown_flag.h"

#define ERROR_BYTES 2048

int
command_refuse(const struct command *c, const char *text)
{
	plain_printf(stderr, "tributary %s: %s\n", c->name, text);
	return COMMAND_FAILED;
}

/* -1 with a sentence. */
static int
take_flag(struct command_line *line, const struct command *c, void *arg,
    int flag, char **argv, char *err, size_t err_size)
{
	char help[64];

	switch (flag) {
	case COMMAND_FLAG_CONNECT:
		line->connect = optarg;
		return 0;
	case ':':
		snprintf(err, err_size, "%s wants a value", argv[optind - 1]);
		return -1;
	case '?':
		snprintf(help, sizeof(help), "see tributary %s --help",
		    c->name);
		unknown_flag(argv[optind - 1], c->flags, help, err, err_size);
		return -1;
	default:
		if (dial_flags_take(&line->how, flag, optarg))
			return 0;
		return c->take(arg, flag, optarg, err, err_size);
	}
}

int
command_line_parse(struct command_line *line, const struct command *c,
    void *arg, int argc, char **argv)
{
	char err[ERROR_BYTES];
	int flag;

	opterr = 0;
	optind = 0; /* anew: glibc keeps state between calls */
	while ((flag = getopt_long(argc, argv, c->short_flags, c->flags,
	    NULL)) != -1) {
		if (flag == 'h') {
			fputs(c->help, stdout);
			return COMMAND_OK;
		}
		if (take_flag(line, c, arg, flag, argv, err, sizeof(err)) != 0)
			return command_refuse(c, err);
	}
	line->words = (const char *const *)argv + optind;
	line->n_words = (size_t)(argc - optind);
	return -1;
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
