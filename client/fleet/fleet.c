#include "client/fleet/fleet.h"

#include <stdio.h>
#include <string.h>

#include "client/command/collectors.h"
#include "client/fleet/drain.h"
#include "client/fleet/haproxy.h"
#include "client/fleet/triggers.h"
#include "transport/base/failure.h"
#include "transport/base/flag_words.h"
#include "transport/base/flags.h"
#include "transport/base/log.h"
#include "transport/base/size_duration.h"
#include "transport/socket/addr.h"

#define ERROR_BYTES 1024
/* Where tributary-web listens, unless it is told otherwise. */
#define WEB_PORT 8037u
#define GRACE_MS 30000u
/* Less would take a collector that starts anew for one that is gone. */
#define GRACE_LEAST_MS 300u
#define GRACE_MOST_MS  3600000u

static const char help[] =
    "Usage: tributary fleet haproxy COLLECTOR...|--fleet FILE\n"
    "           [--listen HOST:PORT]\n"
    "           [--health-port PORT] [--health-ca FILE] [--grace TIME]\n"
    "       tributary fleet triggers --fleet FILE\n"
    "       tributary fleet drain ... (see tributary fleet drain --help)\n"
    "\n"
    "Prints the settings of an HAProxy that spreads devices over several\n"
    "collectors, each by the server name that it asks for (--sni-machine), and\n"
    "passes their TLS through:\n"
    "\n"
    "  tributary fleet haproxy c1.example:7443 c2.example:7443 \\\n"
    "      --health-ca /etc/haproxy/ca.pem >haproxy.cfg\n"
    "  haproxy -c -f haproxy.cfg\n"
    "\n"
    "  COLLECTOR           HOST:PORT, where it listens for producers over TLS\n"
    "      --fleet FILE    the collectors of a fleet's file, by their `producers`\n"
    "      --listen HOST:PORT  where devices connect.  Default: *:7443\n"
    "      --health-port PORT  where tributary-web listens beside each collector,\n"
    "                      which is asked for /readyz.  Default: 8037\n"
    "      --health-ca FILE  ask over HTTPS: the CA of tributary-web's\n"
    "                      certificates.  HAProxy takes its token from the\n"
    "                      variable TRIBUTARY_WEB_TOKEN\n"
    "      --grace TIME    a collector that does not answer for so long is gone,\n"
    "                      and its devices go to others.  Default: 30s\n"
    "  -h, --help          print this\n"
    "\n"
    "triggers: runs until it is stopped, and passes each of the fleet_triggers in\n"
    "FILE on from the collector where it was activated to all others, once; of\n"
    "several such programs one does so, and the others wait to take over.\n"
    "\n"
    "Exit status: 0, or 1 when there is nothing that HAProxy could use, or FILE\n"
    "names no triggers.\n";

struct fleet_options {
	struct haproxy_settings haproxy;
	const char *fleet; /* FILE; NULL: none */
};

static int
take_port(void *options, const struct flag *flag, const char *text, char *err,
    size_t err_size)
{
	struct haproxy_settings *s =
	    &((struct fleet_options *)options)->haproxy;

	if (addr_port(text, &s->health_port) != 0)
		return FAILURE(err, err_size, "--health-port takes a number "
		    "from 1 to 65535");
	return 0;
}

static int
take_grace(void *options, const struct flag *flag, const char *text, char *err,
    size_t err_size)
{
	struct haproxy_settings *s =
	    &((struct fleet_options *)options)->haproxy;
	char why[256];

	if (size_duration_parse_long_ms(text, &s->grace_ms, why,
	    sizeof(why)) != 0)
		return FAILURE(err, err_size, "--grace: %s", why);
	if (s->grace_ms < GRACE_LEAST_MS || s->grace_ms > GRACE_MOST_MS)
		return FAILURE(err, err_size, "--grace is at least 300ms and "
		    "at most 1h");
	return 0;
}

#define AT(member) .at = offsetof(struct fleet_options, member)

static const struct flag table[] = {
	{ "help", FLAG_HELP, .letter = 'h' },
	{ "listen", FLAG_TEXT, AT(haproxy.listen) },
	{ "fleet", FLAG_TEXT, AT(fleet) },
	{ "health-port", FLAG_VALUE, .take = take_port },
	{ "health-ca", FLAG_TEXT, AT(haproxy.health_ca) },
	{ "grace", FLAG_VALUE, .take = take_grace },
	{ .name = NULL },
};

static const struct flags flags = {
	.table = table,
	.speaker = "tributary fleet",
	.help_is_at = "see tributary fleet --help",
	.help = help,
	.bad_status = 1,
};

/* HAProxy's addresses of the file's collectors, into out. */
static int
take_addresses(const struct collectors *c, const char **out, char *err,
    size_t err_size)
{
	const char *text;
	size_t i;

	if (collectors_want_producers(c, err, err_size) != 0)
		return -1;
	for (i = 0; i < c->n; i++) {
		text = c->list[i].producer.text;
		if (c->list[i].producer.addr.kind != ADDR_TLS)
			return FAILURE(err, err_size, "%s has producers: "
			    "\"%s\": HAProxy leads devices by a server name, "
			    "which tls://HOST:PORT alone has",
			    c->list[i].name, text);
		out[i] = text + strlen("tls://");
	}
	return 0;
}

static int
print_haproxy(struct fleet_options *o, const struct flags_words *words,
    char *err, size_t err_size)
{
	const struct dial_options how = { .service = "producer" };
	const char *addresses[COLLECTORS_MAX];
	struct collectors c = { 0 };
	int rc;

	o->haproxy.collectors = (const char *const *)words->argv + 1;
	o->haproxy.n = (size_t)words->argc - 1;
	if (o->fleet == NULL)
		return haproxy_print(&o->haproxy, stdout, err, err_size);
	if (o->haproxy.n > 0)
		return FAILURE(err, err_size, "--fleet names the collectors: "
		    "leave out %s", o->haproxy.collectors[0]);
	rc = collectors_read(&c, o->fleet, &how, err, err_size);
	if (rc == 0)
		rc = take_addresses(&c, addresses, err, err_size);
	o->haproxy.collectors = addresses;
	o->haproxy.n = c.n;
	if (rc == 0)
		rc = haproxy_print(&o->haproxy, stdout, err, err_size);
	collectors_done(&c);
	return rc;
}

static int
pass_triggers(const struct fleet_options *o, const struct flags_words *words,
    char *err, size_t err_size)
{
	const struct dial_options how = { 0 };
	struct collectors c = { 0 };
	int rc;

	if (o->fleet == NULL || words->argc > 1)
		return FAILURE(err, err_size, "which fleet?  Say --fleet FILE, "
		    "and nothing else");
	log_init("tributary", LOG_LEVEL_INFO);
	rc = collectors_read(&c, o->fleet, &how, err, err_size);
	if (rc == 0)
		rc = triggers_run(&c, err, err_size);
	collectors_done(&c);
	return rc;
}

int
fleet_main(int argc, char **argv)
{
	static const char *const actions[] = { "haproxy", "triggers",
		"drain" };
	struct fleet_options o = {
		.haproxy.listen = "*:7443",
		.haproxy.health_port = WEB_PORT,
		.haproxy.grace_ms = GRACE_MS,
	};
	struct flags_words words = { .argc = argc, .argv = argv };
	char err[ERROR_BYTES];
	size_t at;
	int rc;

	/* Flags of drain are of its own. */
	if (argc > 1 && strcmp(argv[1], "drain") == 0)
		return fleet_drain_main(argc - 1, argv + 1);
	rc = flags_answer(&flags, flags_parse(&flags, &o, &words, err,
	    sizeof(err)), err);
	if (rc >= 0)
		return rc;
	if (flag_words_find(&FLAG_WORDS("fleet", actions),
	    words.argc == 0 ? NULL : words.argv[0], &at, err,
	    sizeof(err)) != 0 ||
	    (at == 0 ? print_haproxy(&o, &words, err, sizeof(err)) :
		pass_triggers(&o, &words, err, sizeof(err))) != 0)
		return flags_refuse(&flags, err);
	if (fflush(stdout) != 0 || ferror(stdout))
		return flags_refuse(&flags, "cannot write to standard output");
	return 0;
}
