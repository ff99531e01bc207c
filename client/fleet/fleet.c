#include "client/fleet/fleet.h"

#include <stdio.h>

#include "client/fleet/haproxy.h"
#include "transport/base/failure.h"
#include "transport/base/flag_words.h"
#include "transport/base/flags.h"
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
    "Usage: tributary fleet haproxy COLLECTOR... [--listen HOST:PORT]\n"
    "           [--health-port PORT] [--health-ca FILE] [--grace TIME]\n"
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
    "Exit status: 0, or 1 when there is nothing that HAProxy could use.\n";

static int
take_port(void *options, const struct flag *flag, const char *text, char *err,
    size_t err_size)
{
	struct haproxy_settings *s = options;

	if (addr_port(text, &s->health_port) != 0)
		return FAILURE(err, err_size, "--health-port takes a number "
		    "from 1 to 65535");
	return 0;
}

static int
take_grace(void *options, const struct flag *flag, const char *text, char *err,
    size_t err_size)
{
	struct haproxy_settings *s = options;
	char why[256];

	if (size_duration_parse_long_ms(text, &s->grace_ms, why,
	    sizeof(why)) != 0)
		return FAILURE(err, err_size, "--grace: %s", why);
	if (s->grace_ms < GRACE_LEAST_MS || s->grace_ms > GRACE_MOST_MS)
		return FAILURE(err, err_size, "--grace is at least 300ms and "
		    "at most 1h");
	return 0;
}

#define AT(member) .at = offsetof(struct haproxy_settings, member)

static const struct flag table[] = {
	{ "help", FLAG_HELP, .letter = 'h' },
	{ "listen", FLAG_TEXT, AT(listen) },
	{ "health-port", FLAG_VALUE, .take = take_port },
	{ "health-ca", FLAG_TEXT, AT(health_ca) },
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

int
fleet_main(int argc, char **argv)
{
	static const char *const actions[] = { "haproxy" };
	struct haproxy_settings s = {
		.listen = "*:7443",
		.health_port = WEB_PORT,
		.grace_ms = GRACE_MS,
	};
	struct flags_words words = { .argc = argc, .argv = argv };
	char err[ERROR_BYTES];
	size_t at;
	int rc;

	rc = flags_answer(&flags, flags_parse(&flags, &s, &words, err,
	    sizeof(err)), err);
	if (rc >= 0)
		return rc;
	if (flag_words_find(&FLAG_WORDS("fleet", actions),
	    words.argc == 0 ? NULL : words.argv[0], &at, err,
	    sizeof(err)) != 0)
		return flags_refuse(&flags, err);
	s.collectors = (const char *const *)words.argv + 1;
	s.n = (size_t)words.argc - 1;
	if (haproxy_print(&s, stdout, err, sizeof(err)) != 0)
		return flags_refuse(&flags, err);
	if (fflush(stdout) != 0 || ferror(stdout))
		return flags_refuse(&flags, "cannot write to standard output");
	return 0;
}
