#include "client/tunnel/connect_options.h"

#include <stdio.h>
#include <string.h>

#include "transport/base/failure.h"
#include "transport/base/log.h"

/* Words in the order of enum connect_service. */
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
    "  --socket ADDR    this one: /path, @abstract, host:port; default: as\n"
    "                   $PERFETTO_PRODUCER_SOCK_NAME and the like name it, else\n"
    "                   the socket in /run/perfetto, else the one in /tmp\n"
    "  --from-ssh-command WORDS\n"
    "                   as a forced command: let the other side choose among\n"
    "                   these words, as it does by the command it asked for;\n"
    "                   without this flag that command is ignored\n"
    "  --accept[=PATH]  the other way round, for a collector that dials:\n"
    "                   listen at PATH (the producer socket's default), wait\n"
    "                   for one producer of this machine and carry it; several\n"
    "                   for one PATH take turns\n"
    "  -h, --help       print this\n"
    "\n"
    "Exit status: 0 when the stream ended, 1 when there was none or it broke.\n";

static int
accept_one(void *options, const struct flag *flag, const char *path, char *err,
    size_t err_size)
{
	struct connect_options *o = options;

	o->accept = true;
	o->accept_path = path;
	return 0;
}

#define AT(member) .at = offsetof(struct connect_options, member)

static const struct flag table[] = {
	{ "help", FLAG_HELP, .letter = 'h' },
	{ "socket", FLAG_TEXT, AT(socket) },
	{ "accept", FLAG_MAYBE, .take = accept_one },
	{ "from-ssh-command", FLAG_TEXT, AT(from_ssh_command) },
	{ .name = NULL },
};

const struct flags connect_options_flags = {
	.table = table,
	.speaker = "tributary connect",
	.help_is_at = "see tributary connect --help",
	.help = help,
	.bad_status = 1,
};

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

/* -1: a word of the list is unknown, or the list is empty. */
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
	return FAILURE(err, err_size, "--from-ssh-command takes words "
	    "separated by commas: producer, consumer, relay; not \"%.60s\"",
	    list);
}

/*
 * Finds the word that the other side asked for: "tributary connect WORD", as
 * our own programs do, or "WORD".  Nothing else of the command is looked at.
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
	if (original == NULL)
		return FAILURE(err, err_size, "--from-ssh-command: the other "
		    "side asked for no command ($SSH_ORIGINAL_COMMAND): it has "
		    "to name one of %s", list);
	word = word_of_command(original);
	if (word >= 0 && is_listed(list, word)) {
		o->service = (enum connect_service)word;
		return 0;
	}
	return FAILURE(err, err_size, "this key may ask for %s, not for \"%s\"",
	    list, log_escape(asked, sizeof(asked), original, strlen(original)));
}

/* The word on the command line. */
static int
take_word(struct connect_options *o, char **rest, int n, char *err,
    size_t err_size)
{
	int word;

	if (n > 1)
		return FAILURE(err, err_size, "%s: one word says all: "
		    "producer, consumer or relay", rest[1]);
	if ((word = find_word(rest[0], strlen(rest[0]))) < 0)
		return FAILURE(err, err_size, "\"%.60s\" is none of producer, "
		    "consumer and relay", rest[0]);
	o->service = (enum connect_service)word;
	return 0;
}

enum flags_verdict
connect_options_parse(struct connect_options *o, int argc, char **argv,
    const char *original, char *err, size_t err_size)
{
	struct connect_options parsed = { .service = CONNECT_PRODUCER };
	struct flags_words line = { .argc = argc, .argv = argv };
	enum flags_verdict verdict;
	const char *list;

	verdict = flags_parse(&connect_options_flags, &parsed, &line, err,
	    err_size);
	if (verdict != FLAGS_RUN)
		return verdict;
	list = parsed.from_ssh_command;
	if (parsed.accept && (parsed.socket != NULL || list != NULL ||
	    line.argc > 0)) {
		snprintf(err, err_size, "--accept waits for a producer here: "
		    "it takes no service, --socket or --from-ssh-command");
		return FLAGS_BAD;
	}
	if (line.argc > 0 && take_word(&parsed, line.argv, line.argc, err,
	    err_size) < 0)
		return FLAGS_BAD;
	if (list != NULL && choose(&parsed, list, line.argc > 0, original, err,
	    err_size) < 0)
		return FLAGS_BAD;
	*o = parsed;
	return FLAGS_RUN;
}
