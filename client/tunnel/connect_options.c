#include "client/tunnel/connect_options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "transport/base/log.h"
#include "transport/base/unknown_flag.h"

enum {
	OPT_SOCKET = 1000,
	OPT_ACCEPT,
	OPT_FROM_SSH,
};

static const struct option long_options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "accept", optional_argument, NULL, OPT_ACCEPT },
	{ "from-ssh-command", required_argument, NULL, OPT_FROM_SSH },
	{ NULL, 0, NULL, 0 },
};

/* In the order of enum connect_service. */
static const char *const words[] = { "producer", "consumer", "relay" };
#define N_WORDS (sizeof(words) / sizeof(words[0]))

static const char help[] =
    "Usage: tributary connect [producer|consumer|relay] [--socket ADDR]\n"
    "       tributary connect --from-ssh-command WORD[,WORD...]\n"
    "       tributary connect --accept[=PATH]\n"
    "\n"
    "Carries standard input and output to a socket of this machine. It is run\n"
    "by ssh, where sshd may not forward: as the remote command of an address\n"
    "ssh://host, or as the forced command of a key in authorized_keys:\n"
    "\n"
    "  command=\"tributary connect producer\",restrict ssh-ed25519 AAAA...\n"
    "\n"
    "  producer, consumer, relay\n"
    "                   which of the collector's sockets (producer)\n"
    "  --socket ADDR    this one: /path, @abstract, host:port; default: what\n"
    "                   $PERFETTO_PRODUCER_SOCK_NAME and the like name, else\n"
    "                   the socket in /run/perfetto, else the one in /tmp\n"
    "  --from-ssh-command WORDS\n"
    "                   as a forced command: let the other side choose among\n"
    "                   these words, as it does by the command it asked for;\n"
    "                   without this flag what it asked for plays no part\n"
    "  --accept[=PATH]  the other way round, for a collector that dials:\n"
    "                   listen at PATH (the producer socket's default), wait\n"
    "                   for one producer of this machine and carry it; several\n"
    "                   for one PATH take turns\n"
    "  -h, --help       print this\n"
    "\n"
    "Exit status: 0 when the stream ended, 1 when there was none or it broke.\n";

const char *
connect_options_help(void)
{
	return help;
}

/* -1: no such word. */
static int
find_word(const char *text, size_t len)
{
	size_t i;

	for (i = 0; i < N_WORDS; i++)
		if (strlen(words[i]) == len &&
		    strncmp(words[i], text, len) == 0)
			return (int)i;
	return -1;
}

static bool
is_listed(const char *list, int word)
{
	size_t n;

	for (; *list != '\0'; list += n + (list[n] == ',')) {
		n = strcspn(list, ",");
		if (find_word(list, n) == word)
			return true;
	}
	return false;
}

/* -1: a word in it is none of ours. */
static int
check_list(const char *list, char *err, size_t err_size)
{
	const char *p;
	size_t n;

	for (p = list; *p != '\0'; p += n + (p[n] == ',')) {
		n = strcspn(p, ",");
		if (find_word(p, n) < 0)
			break;
	}
	if (*p == '\0' && *list != '\0')
		return 0;
	snprintf(err, err_size, "--from-ssh-command takes words separated by "
	    "commas: producer, consumer, relay; not \"%.60s\"", list);
	return -1;
}

/*
 * What the other side asked for: "tributary connect WORD", as our own programs
 * do, or "WORD".  Nothing else of it is looked at.
 */
static int
word_of_command(const char *command)
{
	static const char prefix[] = "tributary connect ";

	if (strncmp(command, prefix, sizeof(prefix) - 1) == 0)
		command += sizeof(prefix) - 1;
	return find_word(command, strlen(command));
}

static int
choose(struct connect_options *o, const char *list, bool given,
    const char *original, char *err, size_t err_size)
{
	char asked[80];
	int word;

	if (check_list(list, err, err_size) < 0)
		return -1;
	if (original == NULL && given)
		return 0;
	if (original == NULL) {
		snprintf(err, err_size, "--from-ssh-command: the other side "
		    "asked for no command ($SSH_ORIGINAL_COMMAND): it has to "
		    "name one of %s", list);
		return -1;
	}
	word = word_of_command(original);
	if (word >= 0 && is_listed(list, word)) {
		o->service = (enum connect_service)word;
		return 0;
	}
	snprintf(err, err_size, "this key may ask for %s, not for \"%s\"", list,
	    log_escape(asked, sizeof(asked), original, strlen(original)));
	return -1;
}

/* The word on the command line. */
static int
take_word(struct connect_options *o, char **rest, int n, char *err,
    size_t err_size)
{
	int word;

	if (n > 1) {
		snprintf(err, err_size, "%s: one word says all: producer, "
		    "consumer or relay", rest[1]);
		return -1;
	}
	if ((word = find_word(rest[0], strlen(rest[0]))) < 0) {
		snprintf(err, err_size, "\"%.60s\" is none of producer, "
		    "consumer and relay", rest[0]);
		return -1;
	}
	o->service = (enum connect_service)word;
	return 0;
}

enum connect_options_verdict
connect_options_parse(struct connect_options *o, int argc, char **argv,
    const char *original, char *err, size_t err_size)
{
	struct connect_options parsed = { .service = CONNECT_PRODUCER };
	const char *list = NULL;
	int flag;

	opterr = 0;
	optind = 0; /* anew: glibc keeps state between calls */
	while ((flag = getopt_long(argc, argv, ":h", long_options,
	    NULL)) != -1) {
		switch (flag) {
		case 'h':
			return CONNECT_OPTIONS_HELP;
		case OPT_SOCKET:
			parsed.socket = optarg;
			break;
		case OPT_ACCEPT:
			parsed.accept = true;
			parsed.accept_path = optarg;
			break;
		case OPT_FROM_SSH:
			list = optarg;
			break;
		case ':':
			snprintf(err, err_size, "%s wants a value",
			    argv[optind - 1]);
			return CONNECT_OPTIONS_BAD;
		default:
			if (optopt > 0 && optopt < 128)
				snprintf(err, err_size, "there is no flag -%c; "
				    "see tributary connect --help", optopt);
			else
				unknown_flag(argv[optind - 1], long_options,
				    "see tributary connect --help", err,
				    err_size);
			return CONNECT_OPTIONS_BAD;
		}
	}
	if (parsed.accept && (parsed.socket != NULL || list != NULL ||
	    argc > optind)) {
		snprintf(err, err_size, "--accept waits for a producer here: "
		    "it takes no service, --socket or --from-ssh-command");
		return CONNECT_OPTIONS_BAD;
	}
	if (argc > optind && take_word(&parsed, argv + optind, argc - optind,
	    err, err_size) < 0)
		return CONNECT_OPTIONS_BAD;
	if (list != NULL && choose(&parsed, list, argc > optind, original, err,
	    err_size) < 0)
		return CONNECT_OPTIONS_BAD;
	*o = parsed;
	return CONNECT_OPTIONS_RUN;
}
