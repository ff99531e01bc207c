#include "service/settings/settings_trust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/settings/settings.h"
#include "transport/socket/addr.h"

#define DIAL_COMMAND      "tributary-relay --stdio"
#define DIAL_MAX_RETRY_MS 30000u

static void
free_rule(struct rule_setting *r)
{
	free(r->name);
	free(r->user);
	free(r->group);
}

static void
free_dial(struct dial_setting *d)
{
	free(d->address);
	free(d->command);
	free(d->machine_name);
}

void
settings_trust_done(struct settings *s)
{
	size_t i;

	for (i = 0; i < s->n_rules; i++)
		free_rule(&s->rules[i]);
	free(s->rules);
	for (i = 0; i < s->n_dials; i++)
		free_dial(&s->dials[i]);
	free(s->dials);
	free(s->tls.dir);
	free(s->tls.ca);
	free(s->tls.certificate);
	free(s->tls.key);
	free(s->tls.crl);
}

/* Copies `from` where it is given.  False: no memory. */
static bool
copy_string(char **to, const char *from)
{
	*to = NULL;
	return from == NULL || (*to = strdup(from)) != NULL;
}

static bool
is_empty(const char *text)
{
	return text != NULL && *text == '\0';
}

static int
check_rule(const struct settings *s, const struct rule_setting *r, char *err,
    size_t err_size)
{
	if (r->name == NULL && r->user == NULL && r->group == NULL) {
		snprintf(err, err_size, "a rule has to name its peers: give it "
		    "a `name` (of a certificate), a `user` or a `group`");
		return -1;
	}
	if (is_empty(r->name) || is_empty(r->user) || is_empty(r->group)) {
		snprintf(err, err_size, "an empty `name`, `user` or `group` "
		    "matches no peer; leave it out, or write \"*\" for all");
		return -1;
	}
	if (r->name != NULL && (r->user != NULL || r->group != NULL)) {
		snprintf(err, err_size, "a peer has a certificate's `name`, or "
		    "is a UNIX user: a rule with both matches no peer; write "
		    "two");
		return -1;
	}
	if (s->n_rules >= SETTINGS_RULES_MAX) {
		snprintf(err, err_size, "more than %u rules",
		    SETTINGS_RULES_MAX);
		return -1;
	}
	return 0;
}

int
settings_add_rule(struct settings *s, const struct rule_setting *r, char *err,
    size_t err_size)
{
	struct rule_setting *grown, copy = *r;

	if (check_rule(s, r, err, err_size) != 0)
		return -1;
	copy.name = copy.user = copy.group = NULL;
	grown = reallocarray(s->rules, s->n_rules + 1, sizeof(*grown));
	if (grown == NULL)
		goto fail;
	s->rules = grown;
	if (!copy_string(&copy.name, r->name) ||
	    !copy_string(&copy.user, r->user) ||
	    !copy_string(&copy.group, r->group))
		goto fail;
	s->rules[s->n_rules++] = copy;
	return 0;

fail:
	free_rule(&copy);
	snprintf(err, err_size, "no memory");
	return -1;
}

/* a is what its address is parsed to. */
static int
check_dial(const struct settings *s, const struct dial_setting *d,
    struct addr *a, char *err, size_t err_size)
{
	size_t i;

	if (d->address == NULL) {
		snprintf(err, err_size, "it has no `address`");
		return -1;
	}
	if (addr_parse(a, d->address, err, err_size) != 0)
		return -1;
	if (a->kind != ADDR_SSH) {
		snprintf(err, err_size, "%s: a device is dialled through ssh: "
		    "write ssh://[user@]host[:port][/path]", d->address);
		return -1;
	}
	if (a->path[0] != '\0' && a->path[0] != '/') {
		snprintf(err, err_size, "%s: a device listens for its "
		    "producers on a UNIX socket: write ssh://host/path",
		    d->address);
		return -1;
	}
	if (a->path[0] != '\0' && d->command != NULL) {
		snprintf(err, err_size, "%s: with a path nothing runs there "
		    "but sshd: leave out `command`, or the path", d->address);
		return -1;
	}
	if (is_empty(d->command) || is_empty(d->machine_name)) {
		snprintf(err, err_size, "%s: an empty `command` or "
		    "`machine_name`; leave it out for the default",
		    d->address);
		return -1;
	}
	if (d->port == LISTEN_CONSUMER) {
		snprintf(err, err_size, "%s: a device brings producers, or is "
		    "a relay; consumers are not dialled", d->address);
		return -1;
	}
	for (i = 0; i < s->n_dials; i++) {
		if (strcmp(s->dials[i].address, d->address) != 0)
			continue;
		snprintf(err, err_size, "%s is named twice", d->address);
		return -1;
	}
	if (s->n_dials >= SETTINGS_DIALS_MAX) {
		snprintf(err, err_size, "more than %u devices to dial",
		    SETTINGS_DIALS_MAX);
		return -1;
	}
	return 0;
}

int
settings_add_dial(struct settings *s, const struct dial_setting *d, char *err,
    size_t err_size)
{
	struct dial_setting *grown, copy = *d;
	const char *command;
	struct addr a;

	if (check_dial(s, d, &a, err, err_size) != 0)
		return -1;
	copy.address = copy.command = copy.machine_name = NULL;
	grown = reallocarray(s->dials, s->n_dials + 1, sizeof(*grown));
	if (grown == NULL)
		goto fail;
	s->dials = grown;
	command = d->command == NULL && a.path[0] == '\0' ? DIAL_COMMAND :
	    d->command;
	if (!copy_string(&copy.address, d->address) ||
	    !copy_string(&copy.command, command) ||
	    !copy_string(&copy.machine_name,
		d->machine_name != NULL ? d->machine_name : a.host))
		goto fail;
	if (copy.max_retry_ms == 0)
		copy.max_retry_ms = DIAL_MAX_RETRY_MS;
	s->dials[s->n_dials++] = copy;
	return 0;

fail:
	free_dial(&copy);
	snprintf(err, err_size, "no memory");
	return -1;
}

/* ---- all of it together ---- */

static bool
has_certificates(const struct tls_setting *t)
{
	return t->dir != NULL ||
	    (t->ca != NULL && t->certificate != NULL && t->key != NULL);
}

static int
check_listeners(const struct settings *s, char *err, size_t err_size)
{
	const struct listen_setting *l;
	struct addr a;
	size_t i;

	for (i = 0; i < s->n_listen; i++) {
		l = &s->listen[i];
		if (addr_parse(&a, l->address, err, err_size) != 0)
			return -1;
		if (a.kind == ADDR_TLS && !has_certificates(&s->tls)) {
			snprintf(err, err_size, "%s needs certificates: name "
			    "their directory with --tls-dir, or `tls { dir }` "
			    "in the settings (or ca, certificate and key "
			    "there); `tributary cert init DIR` makes them",
			    l->address);
			return -1;
		}
		if (l->port == LISTEN_CONSUMER && !l->allow_plain_consumer &&
		    (a.kind == ADDR_TCP || a.kind == ADDR_VSOCK)) {
			snprintf(err, err_size, "%s for consumers is refused: "
			    "peers are not authenticated there, so every user "
			    "of this machine could read every trace.  Use a "
			    "UNIX socket or tls://, or permit it with "
			    "--allow-plain-consumer %s (in the settings: "
			    "listen { address: \"%s\" port: CONSUMER "
			    "allow_plain_consumer: true }); off the loopback "
			    "interface it needs --allow-remote too", l->address,
			    l->address, l->address);
			return -1;
		}
	}
	return 0;
}

int
settings_check(const struct settings *s, char *err, size_t err_size)
{
	if (check_listeners(s, err, err_size) != 0)
		return -1;
	if (s->seccomp && s->n_dials > 0) {
		snprintf(err, err_size, "seccomp and dial do not go together: "
		    "the ssh that reaches %s needs system calls that seccomp "
		    "refuses; leave one of them out", s->dials[0].address);
		return -1;
	}
	return 0;
}
