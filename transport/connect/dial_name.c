#include "transport/connect/dial_name.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/base/failure.h"
#include "transport/base/log.h"
#include "transport/connect/dial.h"
#include "transport/socket/addr.h"

/* RFC 1035, 2.3.4: of a label, and of a name as text. */
#define LABEL_MAX 63u
#define NAME_MOST 253u

#define LETTERS_AND_DIGITS                                                    \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/*
 * Not what DNS carries but what host names are made of: a wildcard in a
 * certificate stands for nothing else.
 */
static bool
is_label(const char *text)
{
	size_t len = strlen(text);

	return len > 0 && len <= LABEL_MAX &&
	    strspn(text, LETTERS_AND_DIGITS "-") == len && text[0] != '-' &&
	    text[len - 1] != '-';
}

static bool
is_address(const char *host)
{
	/* fe80::1%eth0 is one, too. */
	return strchr(host, ':') != NULL || addr_host_is_number(host);
}

static void
find_machine(const struct dial_options *how, char *out, size_t out_size)
{
	const char *name = how->machine_name;

	if (name == NULL)
		name = getenv("PERFETTO_MACHINE_NAME");
	if (name != NULL)
		snprintf(out, out_size, "%s", name);
	else if (gethostname(out, out_size) != 0)
		out[0] = '\0';
	out[out_size - 1] = '\0';
}

int
dial_server_name(const struct dial_options *how, const struct addr *a,
    char out[DIAL_NAME_MAX], char *err, size_t err_size)
{
	const char *host = how->tls_name != NULL ? how->tls_name : a->host;
	char machine[DIAL_NAME_MAX], shown[128];
	size_t before; /* bytes of the name that stand in front of the host */

	if (!how->sni_machine) {
		snprintf(out, DIAL_NAME_MAX, "%s", host);
		return 0;
	}
	find_machine(how, machine, sizeof(machine));
	if (!is_label(machine)) {
		log_escape(shown, sizeof(shown), machine, strlen(machine));
		return FAILURE(err, err_size, "--sni-machine puts the "
		    "machine's name in front of the collector's host, and "
		    "\"%s\" cannot stand there: give this machine a name of at "
		    "most %u letters, digits and hyphens, with a letter or "
		    "digit at both ends (--machine-name, "
		    "PERFETTO_MACHINE_NAME)", shown, LABEL_MAX);
	}
	if (is_address(host))
		return FAILURE(err, err_size, "--sni-machine puts the "
		    "machine's name in front of a host name, and %s is an "
		    "address: name the collectors by the name in their "
		    "certificate, without *. (--tls-name)", host);
	before = strlen(machine) + 1;
	if (before + strlen(host) > NAME_MOST)
		return FAILURE(err, err_size, "--sni-machine makes a server "
		    "name of more than %u bytes: %s.%.100s...", NAME_MOST,
		    machine, host);
	memcpy(out, machine, before);
	out[before - 1] = '.';
	memcpy(out + before, host, strlen(host) + 1);
	return 0;
}
