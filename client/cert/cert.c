#include "client/cert/cert.h"

#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/cert/authority.h"
#include "client/cert/name.h"
#include "client/cert/options.h"
#include "client/cert/renew_ca.h"
#include "client/cert/revoke.h"
#include "client/cert/show.h"
#include "client/cert/store.h"
#include "client/text/shell_word.h"
#include "protos/plain_text.h"
#include "transport/base/human_numbers.h"
#include "transport/socket/roles.h"
#include "transport/tls/tls.h"

#define EXIT_REFUSED 1
#define EXIT_USAGE   2

/* A path in quotes of the shell, at its worst. */
#define SHELL_SIZE (4 * PATH_MAX + 3)
/* Most names of this host that are added to the command line's. */
#define N_OWN_NAMES 5

struct own_names {
	char host[CERT_ALTERNATIVE_MAX + 1];
	char full[CERT_ALTERNATIVE_MAX + 1]; /* "": not known */
};

static int
refuse(const char *text)
{
	plain_printf(stderr, "tributary: %s\n", text);
	return EXIT_REFUSED;
}

/* Asks the resolver for this host's full name: "host.example.org". */
static void
find_full_name(struct own_names *n)
{
	struct addrinfo hints = { .ai_flags = AI_CANONNAME }, *found = NULL;
	size_t len = strlen(n->host);

	n->full[0] = '\0';
	if (getaddrinfo(n->host, NULL, &hints, &found) != 0)
		return;
	/* no other name that a wildcard or a search list made of it */
	if (found->ai_canonname != NULL &&
	    strncasecmp(found->ai_canonname, n->host, len) == 0 &&
	    found->ai_canonname[len] == '.' &&
	    cert_name_kind(found->ai_canonname) == CERT_NAME_DNS)
		snprintf(n->full, sizeof(n->full), "%s", found->ai_canonname);
	freeaddrinfo(found);
}

static void
find_own_names(struct own_names *n)
{
	if (gethostname(n->host, sizeof(n->host)) < 0)
		n->host[0] = '\0';
	n->host[sizeof(n->host) - 1] = '\0';
	if (cert_name_kind(n->host) != CERT_NAME_DNS)
		snprintf(n->host, sizeof(n->host), "localhost");
	find_full_name(n);
}

static void
say_until(const struct cert_entry *e, bool shortened)
{
	char until[CERT_TIME_SIZE];

	printf("It is valid until %.10s%s.\n", cert_time_text(e->until, until),
	    shortened ? ", when the CA ends" : "");
}

/* init */

static int
begin(const struct cert_options *o)
{
	const char *names[CERT_OPTIONS_MAX_NAMES + N_OWN_NAMES];
	char err[CERT_ERROR_SIZE], dir[SHELL_SIZE];
	struct own_names own;
	struct cert_outcome done;
	struct cert_order order = {
		.dir = o->dir,
		.organization = o->organization,
		.alternatives = names,
		.days = o->days != 0 ? o->days : CERT_DEFAULT_DAYS,
		.key = o->key,
		.now = time(NULL),
	};
	size_t i, n = 0;

	find_own_names(&own);
	names[n++] = own.host;
	if (own.full[0] != '\0')
		names[n++] = own.full;
	names[n++] = "localhost";
	names[n++] = "127.0.0.1";
	names[n++] = "::1";
	for (i = 0; i < o->n_names; i++)
		names[n++] = o->names[i];
	order.n_alternatives = n;
	/* a common name has 64 bytes at most */
	order.name = strlen(own.host) <= CERT_NAME_MAX ? own.host : "collector";
	if (cert_authority_init(&order, &done, err, sizeof(err)) < 0)
		return refuse(err);
	shell_word(o->dir, dir, sizeof(dir));
	printf("%s holds a CA and the certificate of this collector.\n",
	    o->dir);
	say_until(&done.entry, done.shortened);
	printf("\nStart the collector:\n"
	    "  tributaryd --producer-socket tls://0.0.0.0:7443 "
	    "--consumer-socket tls://0.0.0.0:7444 \\\n"
	    "      --tls-dir %s\n"
	    "Make a certificate for each device:\n"
	    "  tributary cert issue %s NAME\n"
	    "and for each person that records:\n"
	    "  tributary cert issue %s NAME --role consumer\n\n"
	    "Keep %s/%s secret, which can make certificates; it need not be\n"
	    "on the collector, which reads %s, %s, %s and %s.\n", dir, dir,
	    dir, o->dir, CERT_CA_KEY_FILE, TLS_CA_FILE, TLS_CERT_FILE,
	    TLS_KEY_FILE, TLS_CRL_FILE);
	cert_outcome_done(&done);
	return 0;
}

/* issue, renew */

/* Says where the files of a device or a person have to go. */
static void
say_how_to_use(const struct cert_outcome *done)
{
	char folder[SHELL_SIZE];
	uint32_t role = done->entry.role;

	shell_word(done->folder, folder, sizeof(folder));
	printf("\nCopy the files there, over a safe way, as one of them is the "
	    "key:\n"
	    "  ssh HOST mkdir -p .config/tributary/tls\n"
	    "  scp -p %s/*.pem HOST:.config/tributary/tls/\n"
	    "They are found there without being named (--tls-dir names "
	    "another folder):\n", folder);
	if ((role & (ROLE_CONSUMER | ROLE_ADMIN)) != 0)
		printf("  tributary record --connect tls://COLLECTOR:7444 "
		    "--all-machines \\\n"
		    "      -o trace.pftrace linux.process_stats "
		    "linux.sys_stats\n");
	else if ((role & ROLE_RELAY) != 0)
		printf("  tributary-relay --to tls://COLLECTOR:7443\n");
	else
		printf("  tributary-probes --producer-socket "
		    "tls://COLLECTOR:7443\n");
}

static struct cert_order
order_of(const struct cert_options *o)
{
	return (struct cert_order){
		.dir = o->dir,
		.name = o->name,
		.role = o->role,
		.alternatives = o->names,
		.n_alternatives = o->n_names,
		.out = o->out,
		.days = o->days != 0 ? o->days : CERT_DEFAULT_DAYS,
		.key = o->key,
		.key_given = o->key_given,
		.keep_key = o->keep_key,
		.revoke_old = o->revoke_old,
		.now = time(NULL),
	};
}

static int
issue(const struct cert_options *o)
{
	struct cert_order order = order_of(o);
	char err[CERT_ERROR_SIZE];
	struct cert_outcome done;

	if (cert_authority_issue(&order, &done, err, sizeof(err)) < 0)
		return refuse(err);
	printf("%s has a certificate, as %s: %s\n", done.entry.name,
	    cert_role_text(done.entry.role), done.folder);
	say_until(&done.entry, done.shortened);
	say_how_to_use(&done);
	cert_outcome_done(&done);
	return 0;
}

static int
renew_ca(const struct cert_options *o)
{
	struct cert_order order = order_of(o);
	char err[CERT_ERROR_SIZE];
	struct cert_outcome done;

	order.days = o->days != 0 ? o->days : CERT_CA_DAYS;
	if (cert_renew_ca(&order, &done, err, sizeof(err)) < 0)
		return refuse(err);
	printf("The CA in %s has a new certificate on the same key.\n", o->dir);
	say_until(&done.entry, false);
	printf("Every certificate of it stays good. Until the old one ends, "
	    "copy %s/%s\nto all programs that connect.\n", o->dir, TLS_CA_FILE);
	cert_outcome_done(&done);
	return 0;
}

static int
renew(const struct cert_options *o)
{
	struct cert_order order = order_of(o);
	char err[CERT_ERROR_SIZE];
	struct cert_outcome done;

	if (o->ca)
		return renew_ca(o);
	if (cert_authority_renew(&order, &done, err, sizeof(err)) < 0)
		return refuse(err);
	printf("%s has a new certificate, as %s: %s\n", done.entry.name,
	    cert_role_text(done.entry.role), done.folder);
	say_until(&done.entry, done.shortened);
	printf("%s\n", o->revoke_old
		? "The old one is revoked."
		: "The old one stays good until it expires.");
	if (o->name == NULL)
		printf("A tributaryd that runs with %s takes it up by "
		    "itself.\n", o->dir);
	else
		say_how_to_use(&done);
	cert_outcome_done(&done);
	return 0;
}

/* revoke */

static int
take_back(const struct cert_options *o)
{
	struct cert_revoked done;
	char err[CERT_ERROR_SIZE];
	char when[CERT_TIME_SIZE];

	if (cert_revoke(o->dir, &(struct cert_revocation){ o->name, o->reason,
		time(NULL) }, &done, err, sizeof(err)) < 0)
		return refuse(err);
	if (done.n > 0)
		printf("%zu certificate%s of %s %s revoked: %s/%s\n", done.n,
		    human_s(done.n), done.entry.name,
		    done.n == 1 ? "is" : "are", o->dir, TLS_CRL_FILE);
	else if (done.entry.state == CERT_REVOKED)
		printf("%s was revoked already, at %s; %s/%s is written "
		    "anew.\n", done.entry.name,
		    cert_time_text(done.entry.revoked, when), o->dir,
		    TLS_CRL_FILE);
	else
		printf("The certificate of %s has expired, at %s: it is "
		    "refused anyway.\n", done.entry.name,
		    cert_time_text(done.entry.until, when));
	printf("A tributaryd that runs with %s picks it up by itself; copy %s "
	    "to any that\nruns elsewhere.\n", o->dir, TLS_CRL_FILE);
	if (done.entry.role == 0)
		printf("This was the collector's own: make a new one with "
		    "tributary cert renew %s,\nand give %s to its "
		    "peers.\n", o->dir, TLS_CRL_FILE);
	return 0;
}

static int
show(const struct cert_options *o)
{
	char err[CERT_ERROR_SIZE];
	struct stat st;
	int r;

	if (stat(o->dir, &st) == 0 && S_ISDIR(st.st_mode))
		r = cert_show_folder(stdout, o->dir, o->json, time(NULL), err,
		    sizeof(err));
	else
		r = cert_show_file(stdout, o->dir, o->json, time(NULL), err,
		    sizeof(err));
	return r < 0 ? refuse(err) : 0;
}

static int
run(const struct cert_options *o)
{
	switch (o->action) {
	case CERT_INIT:
		return begin(o);
	case CERT_ISSUE:
		return issue(o);
	case CERT_SHOW:
		return show(o);
	case CERT_RENEW:
		return renew(o);
	case CERT_REVOKE:
		return take_back(o);
	}
	return EXIT_USAGE;
}

int
cert_main(int argc, char **argv)
{
	struct cert_options options;
	char err[CERT_ERROR_SIZE];
	int status;

	status = flags_answer(&cert_options_flags,
	    cert_options_parse(&options, argc, argv, err, sizeof(err)), err);
	if (status >= 0)
		return status;
	status = run(&options);
	if (fflush(stdout) != 0 && status == 0)
		return refuse("cannot write to standard output");
	return status;
}
