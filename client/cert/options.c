#include "client/cert/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cert/name.h"
#include "transport/base/failure.h"
#include "transport/base/flag_words.h"
#include "transport/socket/roles.h"

/* A hundred years: what dates in a certificate can still say. */
#define DAYS_MAX 36500

#define ON(action) (1 << (action))

static const struct {
	const char *word;
	enum cert_action action;
	int least, most; /* arguments */
	const char *wants;
} actions[] = {
	{ "init", CERT_INIT, 1, 1, "a folder" },
	{ "issue", CERT_ISSUE, 2, 2, "a folder and a name" },
	{ "show", CERT_SHOW, 1, 1, "a folder or a file" },
	{ "renew", CERT_RENEW, 1, 2, "a folder, and a name or nothing" },
	{ "revoke", CERT_REVOKE, 2, 2,
	    "a folder, and a name or a serial number" },
};

static const char help[] =
    "Usage: tributary cert init DIR [--name HOST]...\n"
    "       tributary cert issue DIR NAME [--role ROLE] [--out FOLDER]\n"
    "       tributary cert show DIR|FILE.pem [--json]\n"
    "       tributary cert renew DIR [NAME]\n"
    "       tributary cert renew DIR --ca\n"
    "       tributary cert revoke DIR NAME|SERIAL\n"
    "\n"
    "Makes the certificates with which tributaryd and its peers know each other\n"
    "(tls://): a private CA in the folder DIR.\n"
    "\n"
    "init: the CA, and the collector's certificate. DIR is then the folder for\n"
    "tributaryd --tls-dir.\n"
    "      --name HOST      a name or address by which the collector is reached,\n"
    "                       besides the names of this host; may be repeated\n"
    "      --org TEXT       an organization, to be written into them\n"
    "\n"
    "issue: a certificate for a device or a person.\n"
    "      --role ROLE      producer (the default), relay, consumer (records, and\n"
    "                       sees its own sessions) or admin (sees all)\n"
    "      --out FOLDER     write there instead of DIR/issued/NAME\n"
    "      --san X          one more name, address, URI or mail address; may be\n"
    "                       repeated\n"
    "\n"
    "show: the certificates issued, and their dates; or all of one file.\n"
    "      --json           for programs\n"
    "\n"
    "renew: the same names and role, a new key and new dates; without NAME the\n"
    "collector's own. The old certificate stays valid until it expires.\n"
    "      --name HOST      one more name for the collector; may be repeated\n"
    "      --san X          one more name for NAME; may be repeated\n"
    "      --out FOLDER     the folder that issue --out was given\n"
    "      --keep-key       keep the key\n"
    "      --revoke-old     revoke the old certificate\n"
    "      --ca             the CA itself, on the same key\n"
    "\n"
    "revoke: take all certificates of NAME back, or one. A tributaryd that runs\n"
    "with DIR notices by itself.\n"
    "      --reason WHY     unspecified (the default), key-compromise,\n"
    "                       affiliation-changed, superseded or cessation\n"
    "\n"
    "With init, issue and renew:\n"
    "      --days N         how long it is valid (825), at most as long as the\n"
    "                       CA, which has ten years\n"
    "      --key KIND       p256 (ECDSA, the default) or ed25519\n"
    "  -h, --help           print this\n"
    "\n"
    "Exit status: 0 when it is done, 1 when it is not, 2 when the command line is\n"
    "wrong.\n";

static int
parse_days(void *options, const struct flag *flag, const char *text, char *err,
    size_t err_size)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end != '\0' || v == 0 ||
	    v > DAYS_MAX)
		return FAILURE(err, err_size, "--days %.40s is not a number "
		    "from 1 to %d", text, DAYS_MAX);
	((struct cert_options *)options)->days = (unsigned)v;
	return 0;
}

static int
parse_key(void *options, const struct flag *flag, const char *text, char *err,
    size_t err_size)
{
	struct cert_options *o = options;

	if (strcmp(text, "p256") == 0) {
		o->key = CERT_KEY_P256;
	} else if (strcmp(text, "ed25519") == 0) {
		o->key = CERT_KEY_ED25519;
	} else {
		return FAILURE(err, err_size, "--key %.40s is not known: say "
		    "p256 or ed25519", text);
	}
	o->key_given = true;
	return 0;
}

static int
add_san(void *options, const struct flag *flag, const char *text, char *err,
    size_t err_size)
{
	struct cert_options *o = options;

	if (o->n_names == CERT_OPTIONS_MAX_NAMES)
		return FAILURE(err, err_size, "more than %d names",
		    CERT_OPTIONS_MAX_NAMES);
	if (cert_name_check_alternative(text, err, err_size) < 0)
		return -1;
	o->names[o->n_names++] = text;
	return 0;
}

static int
add_host(void *options, const struct flag *flag, const char *text, char *err,
    size_t err_size)
{
	struct cert_options *o = options;

	o->n_hosts++;
	return add_san(o, flag, text, err, err_size);
}

static int
parse_role(void *options, const struct flag *flag, const char *text, char *err,
    size_t err_size)
{
	struct cert_options *o = options;

	if ((o->role = role_by_name(text)) != 0)
		return 0;
	return FAILURE(err, err_size, "there is no role %.40s: say producer, "
	    "relay, consumer or admin", text);
}

static int
parse_reason(void *options, const struct flag *flag, const char *text,
    char *err, size_t err_size)
{
	struct cert_options *o = options;

	if (cert_reason_parse(text, &o->reason) == 0)
		return 0;
	return FAILURE(err, err_size, "there is no reason %.40s: say "
	    "unspecified, key-compromise, affiliation-changed, superseded or "
	    "cessation", text);
}

#define AT(member) .at = offsetof(struct cert_options, member)
#define MADE       ON(CERT_INIT) | ON(CERT_ISSUE) | ON(CERT_RENEW)

/* id: the commands that know the flag. */
static const struct flag table[] = {
	{ "help", FLAG_HELP, .letter = 'h' },
	{ "name", FLAG_VALUE, .take = add_host,
	    .id = ON(CERT_INIT) | ON(CERT_RENEW) },
	{ "san", FLAG_VALUE, .take = add_san,
	    .id = ON(CERT_ISSUE) | ON(CERT_RENEW) },
	{ "days", FLAG_VALUE, .take = parse_days, .id = MADE },
	{ "key", FLAG_VALUE, .take = parse_key, .id = MADE },
	{ "org", FLAG_TEXT, AT(organization), .id = ON(CERT_INIT) },
	{ "role", FLAG_VALUE, .take = parse_role, .id = ON(CERT_ISSUE) },
	{ "out", FLAG_TEXT, AT(out), .id = ON(CERT_ISSUE) | ON(CERT_RENEW) },
	{ "json", FLAG_BOOL, AT(json), .id = ON(CERT_SHOW) },
	{ "ca", FLAG_BOOL, AT(ca), .id = ON(CERT_RENEW) },
	{ "keep-key", FLAG_BOOL, AT(keep_key), .id = ON(CERT_RENEW) },
	{ "revoke-old", FLAG_BOOL, AT(revoke_old), .id = ON(CERT_RENEW) },
	{ "reason", FLAG_VALUE, .take = parse_reason, .id = ON(CERT_REVOKE) },
	{ .name = NULL },
};

const struct flags cert_options_flags = {
	.table = table,
	.speaker = "tributary",
	.help_is_at = "see tributary cert --help",
	.help = help,
	.bad_status = 2,
};

/* Refuses flags that mean nothing to the command. */
static int
check_flags(uint64_t given, enum cert_action action, const char *word,
    char *err, size_t err_size)
{
	size_t i;

	for (i = 0; table[i].name != NULL; i++) {
		if (!(given >> i & 1) || (table[i].id & ON(action)) != 0)
			continue;
		return FAILURE(err, err_size, "--%s means nothing to cert %s; "
		    "see tributary cert --help", table[i].name, word);
	}
	return 0;
}

static int
check_together(const struct cert_options *o, char *err, size_t err_size)
{
	const char *wrong = NULL;
	bool san = o->n_names > o->n_hosts, host = o->n_hosts > 0;

	if (o->keep_key && o->key_given)
		wrong = "--keep-key and --key contradict each other";
	else if (o->ca && (o->name != NULL || o->n_names > 0 || o->key_given ||
		o->keep_key || o->revoke_old || o->out != NULL))
		wrong = "--ca renews the CA on its own key, and goes with "
			"--days only";
	else if (o->action == CERT_RENEW && o->name != NULL && host)
		wrong = "--name is for the collector: say --san";
	else if (o->action == CERT_RENEW && o->name == NULL && san)
		wrong = "--san is for a NAME: say --name for the collector";
	else if (o->action == CERT_RENEW && o->name == NULL && o->out != NULL)
		wrong = "--out is for a NAME: the collector's certificate is "
			"in DIR";
	else if (o->dir[0] == '\0')
		wrong = "the name of the folder is empty";
	if (wrong == NULL)
		return 0;
	return FAILURE(err, err_size, "%s", wrong);
}

/* Takes the words: the action, the folder, and perhaps a name. */
static int
take_words(struct cert_options *o, const struct flags_words *line, char *err,
    size_t err_size)
{
	char **words = line->argv;
	int n = line->argc;
	size_t at;

	if (flag_words_find(&FLAG_WORDS("cert", actions),
	    n == 0 ? NULL : words[0], &at, err, err_size) < 0)
		return -1;
	if (n - 1 < actions[at].least || n - 1 > actions[at].most)
		return FAILURE(err, err_size, "cert %s wants %s; see tributary "
		    "cert --help", actions[at].word, actions[at].wants);
	o->action = actions[at].action;
	o->dir = words[1];
	o->name = n > 2 ? words[2] : NULL;
	if (check_flags(line->given, o->action, actions[at].word, err, err_size) < 0)
		return -1;
	return check_together(o, err, err_size);
}

enum flags_verdict
cert_options_parse(struct cert_options *o, int argc, char **argv, char *err,
    size_t err_size)
{
	struct cert_options parsed = { .role = ROLE_PRODUCER };
	struct flags_words words = { .argc = argc, .argv = argv };
	enum flags_verdict verdict;

	verdict = flags_parse(&cert_options_flags, &parsed, &words, err,
	    err_size);
	if (verdict != FLAGS_RUN)
		return verdict;
	if (take_words(&parsed, &words, err, err_size) < 0)
		return FLAGS_BAD;
	*o = parsed;
	return FLAGS_RUN;
}
