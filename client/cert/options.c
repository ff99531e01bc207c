#include "client/cert/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cert/name.h"
#include "protos/nearest.h"
#include "transport/base/unknown_flag.h"
#include "transport/socket/roles.h"

/* A hundred years: what dates in a certificate can still say. */
#define DAYS_MAX 36500

enum {
	OPT_NAME = 1000,
	OPT_SAN,
	OPT_DAYS,
	OPT_KEY,
	OPT_ORG,
	OPT_ROLE,
	OPT_OUT,
	OPT_JSON,
	OPT_CA,
	OPT_KEEP_KEY,
	OPT_REVOKE_OLD,
	OPT_REASON,
};

static const struct option long_options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ "name", required_argument, NULL, OPT_NAME },
	{ "san", required_argument, NULL, OPT_SAN },
	{ "days", required_argument, NULL, OPT_DAYS },
	{ "key", required_argument, NULL, OPT_KEY },
	{ "org", required_argument, NULL, OPT_ORG },
	{ "role", required_argument, NULL, OPT_ROLE },
	{ "out", required_argument, NULL, OPT_OUT },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "ca", no_argument, NULL, OPT_CA },
	{ "keep-key", no_argument, NULL, OPT_KEEP_KEY },
	{ "revoke-old", no_argument, NULL, OPT_REVOKE_OLD },
	{ "reason", required_argument, NULL, OPT_REASON },
	{ NULL, 0, NULL, 0 },
};
#define N_LONG (sizeof(long_options) / sizeof(long_options[0]) - 1)

#define ON(action) (1u << (action))

/* Which command knows which flag. */
static const struct {
	int flag;
	unsigned actions;
} known[] = {
	{ OPT_NAME, ON(CERT_INIT) | ON(CERT_RENEW) },
	{ OPT_SAN, ON(CERT_ISSUE) | ON(CERT_RENEW) },
	{ OPT_DAYS, ON(CERT_INIT) | ON(CERT_ISSUE) | ON(CERT_RENEW) },
	{ OPT_KEY, ON(CERT_INIT) | ON(CERT_ISSUE) | ON(CERT_RENEW) },
	{ OPT_ORG, ON(CERT_INIT) },
	{ OPT_ROLE, ON(CERT_ISSUE) },
	{ OPT_OUT, ON(CERT_ISSUE) | ON(CERT_RENEW) },
	{ OPT_JSON, ON(CERT_SHOW) },
	{ OPT_CA, ON(CERT_RENEW) },
	{ OPT_KEEP_KEY, ON(CERT_RENEW) },
	{ OPT_REVOKE_OLD, ON(CERT_RENEW) },
	{ OPT_REASON, ON(CERT_REVOKE) },
};
#define N_KNOWN (sizeof(known) / sizeof(known[0]))

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
#define N_ACTIONS (sizeof(actions) / sizeof(actions[0]))

static const char help[] =
    "Usage: tributary cert init DIR [--name HOST]...\n"
    "       tributary cert issue DIR NAME [--role ROLE] [--out FOLDER]\n"
    "       tributary cert show DIR|FILE.pem [--json]\n"
    "       tributary cert renew DIR [NAME]\n"
    "       tributary cert renew DIR --ca\n"
    "       tributary cert revoke DIR NAME|SERIAL\n"
    "\n"
    "Makes the certificates with which tributaryd and those who connect to it\n"
    "know each other (tls://): a private CA in the folder DIR.\n"
    "\n"
    "init: the CA, and the collector's certificate. DIR is then what tributaryd\n"
    "takes as --tls-dir.\n"
    "      --name HOST      a name or address by which the collector is reached,\n"
    "                       besides those of this host; may be repeated\n"
    "      --org TEXT       an organization, to be written into them\n"
    "\n"
    "issue: a certificate for a device or a person.\n"
    "      --role ROLE      producer (the default), relay, consumer (records, and\n"
    "                       sees its own sessions) or admin (sees all)\n"
    "      --out FOLDER     write there instead of DIR/issued/NAME\n"
    "      --san X          one more name, address, URI or mail address; may be\n"
    "                       repeated\n"
    "\n"
    "show: what was issued, and until when it is valid; or all of one file.\n"
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

const char *
cert_options_help(void)
{
	return help;
}

static int
find_action(const char *word, size_t *at, char *err, size_t err_size)
{
	const char *meant;
	struct nearest n;
	size_t i;

	nearest_init(&n, word, strlen(word));
	for (i = 0; i < N_ACTIONS; i++) {
		if (strcmp(actions[i].word, word) == 0) {
			*at = i;
			return 0;
		}
		nearest_offer(&n, actions[i].word);
	}
	meant = nearest_best(&n);
	if (meant != NULL)
		snprintf(err, err_size, "there is no command cert %.40s; did "
		    "you mean %s?", word, meant);
	else
		snprintf(err, err_size, "there is no command cert %.40s: say "
		    "init, issue, show, renew or revoke", word);
	return -1;
}

static int
parse_days(const char *text, unsigned *days, char *err, size_t err_size)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end != '\0' || v == 0 ||
	    v > DAYS_MAX) {
		snprintf(err, err_size, "--days %.40s is not a number from 1 "
		    "to %d", text, DAYS_MAX);
		return -1;
	}
	*days = (unsigned)v;
	return 0;
}

static int
parse_key(const char *text, struct cert_options *o, char *err, size_t err_size)
{
	if (strcmp(text, "p256") == 0) {
		o->key = CERT_KEY_P256;
	} else if (strcmp(text, "ed25519") == 0) {
		o->key = CERT_KEY_ED25519;
	} else {
		snprintf(err, err_size, "--key %.40s is not known: say p256 or "
		    "ed25519", text);
		return -1;
	}
	o->key_given = true;
	return 0;
}

static int
add_name(struct cert_options *o, const char *text, char *err, size_t err_size)
{
	if (o->n_names == CERT_OPTIONS_MAX_NAMES) {
		snprintf(err, err_size, "more than %d names",
		    CERT_OPTIONS_MAX_NAMES);
		return -1;
	}
	if (cert_name_check_alternative(text, err, err_size) < 0)
		return -1;
	o->names[o->n_names++] = text;
	return 0;
}

static int
parse_role(const char *text, uint32_t *role, char *err, size_t err_size)
{
	if ((*role = role_by_name(text)) != 0)
		return 0;
	snprintf(err, err_size, "there is no role %.40s: say producer, relay, "
	    "consumer or admin", text);
	return -1;
}

static int
parse_reason(const char *text, enum cert_reason *reason, char *err,
    size_t err_size)
{
	if (cert_reason_parse(text, reason) == 0)
		return 0;
	snprintf(err, err_size, "there is no reason %.40s: say unspecified, "
	    "key-compromise, affiliation-changed, superseded or cessation",
	    text);
	return -1;
}

/* 0, or -1 and a sentence. */
static int
take_flag(struct cert_options *o, int flag, const char *value, char *err,
    size_t err_size)
{
	switch (flag) {
	case OPT_NAME:
	case OPT_SAN:
		return add_name(o, value, err, err_size);
	case OPT_DAYS:
		return parse_days(value, &o->days, err, err_size);
	case OPT_KEY:
		return parse_key(value, o, err, err_size);
	case OPT_ORG:
		o->organization = value;
		return 0;
	case OPT_ROLE:
		return parse_role(value, &o->role, err, err_size);
	case OPT_OUT:
		o->out = value;
		return 0;
	case OPT_REASON:
		return parse_reason(value, &o->reason, err, err_size);
	case OPT_JSON:
		o->json = true;
		return 0;
	case OPT_CA:
		o->ca = true;
		return 0;
	case OPT_KEEP_KEY:
		o->keep_key = true;
		return 0;
	default:
		o->revoke_old = true;
		return 0;
	}
}

/* Flags that were given and mean nothing for what is to be done. */
static int
check_flags(uint64_t given, enum cert_action action, const char *word,
    char *err, size_t err_size)
{
	size_t i, j;

	for (i = 0; i < N_KNOWN; i++) {
		if (!(given >> (known[i].flag - OPT_NAME) & 1) ||
		    (known[i].actions & ON(action)) != 0)
			continue;
		for (j = 0; j < N_LONG; j++)
			if (long_options[j].val == known[i].flag)
				break;
		snprintf(err, err_size, "--%s means nothing to cert %s; see "
		    "tributary cert --help", long_options[j].name, word);
		return -1;
	}
	return 0;
}

static int
check_together(const struct cert_options *o, uint64_t given, char *err,
    size_t err_size)
{
	const char *wrong = NULL;
	bool san = given >> (OPT_SAN - OPT_NAME) & 1;
	bool name = given & 1;

	if (o->keep_key && o->key_given)
		wrong = "--keep-key and --key contradict each other";
	else if (o->ca && (o->name != NULL || o->n_names > 0 || o->key_given ||
		o->keep_key || o->revoke_old || o->out != NULL))
		wrong = "--ca renews the CA on its own key, and goes with "
			"--days only";
	else if (o->action == CERT_RENEW && o->name != NULL && name)
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
	snprintf(err, err_size, "%s", wrong);
	return -1;
}

/* What stands between the flags. */
static int
take_words(struct cert_options *o, int n, char **words, uint64_t given,
    char *err, size_t err_size)
{
	size_t at;

	if (n == 0) {
		snprintf(err, err_size, "say what to do: init, issue, show, "
		    "renew or revoke; see tributary cert --help");
		return -1;
	}
	if (find_action(words[0], &at, err, err_size) < 0)
		return -1;
	if (n - 1 < actions[at].least || n - 1 > actions[at].most) {
		snprintf(err, err_size, "cert %s wants %s; see tributary cert "
		    "--help", actions[at].word, actions[at].wants);
		return -1;
	}
	o->action = actions[at].action;
	o->dir = words[1];
	o->name = n > 2 ? words[2] : NULL;
	if (check_flags(given, o->action, actions[at].word, err, err_size) < 0)
		return -1;
	return check_together(o, given, err, err_size);
}

enum cert_options_verdict
cert_options_parse(struct cert_options *o, int argc, char **argv, char *err,
    size_t err_size)
{
	struct cert_options parsed = { .role = ROLE_PRODUCER };
	uint64_t given = 0;
	int flag;

	opterr = 0;
	optind = 0;
	while ((flag = getopt_long(argc, argv, ":h", long_options, NULL)) !=
	    -1) {
		if (flag == 'h')
			return CERT_OPTIONS_HELP;
		if (flag == ':') {
			snprintf(err, err_size, "%s wants a value",
			    argv[optind - 1]);
			return CERT_OPTIONS_BAD;
		}
		if (flag == '?') {
			unknown_flag(argv[optind - 1], long_options,
			    "see tributary cert --help", err, err_size);
			return CERT_OPTIONS_BAD;
		}
		given |= UINT64_C(1) << (flag - OPT_NAME);
		if (take_flag(&parsed, flag, optarg, err, err_size) < 0)
			return CERT_OPTIONS_BAD;
	}
	if (take_words(&parsed, argc - optind, argv + optind, given, err,
		err_size) < 0)
		return CERT_OPTIONS_BAD;
	*o = parsed;
	return CERT_OPTIONS_RUN;
}
