#include "service/access/trust.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/settings/settings.h"
#include "transport/base/glob.h"
#include "transport/base/log.h"
#include "transport/tls/tls.h"

/* A rule of the settings, its user and group looked up. */
struct rule {
	const char *name; /* pattern, the settings'; NULL: not asked for */
	bool any_user;
	bool has_uid;
	uint32_t uid;
	bool has_gid;
	uint32_t gid;
	uint32_t *members; /* uids that the group lists; owned */
	size_t n_members;
	uint32_t may; /* widened */
	bool may_claim_machine;
};

struct trust {
	struct rule *rules;
	size_t n_rules;
	uint32_t certificate_default;
	bool ignore_certificate_roles;
	uint32_t own_uid; /* the daemon's, once it has dropped root */
};

/* ---- making it ---- */

/* Digits alone are the id itself. */
static bool
as_number(const char *text, uint32_t *out)
{
	unsigned long v;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	v = strtoul(text, &end, 10);
	if (errno != 0 || *end != '\0' || v >= UINT32_MAX)
		return false;
	*out = (uint32_t)v;
	return true;
}

static int
find_user(const char *name, uint32_t *uid, char *err, size_t err_size)
{
	const struct passwd *p;

	if (as_number(name, uid))
		return 0;
	if ((p = getpwnam(name)) == NULL) {
		snprintf(err, err_size, "there is no user \"%s\", which the "
		    "settings name", name);
		return -1;
	}
	*uid = p->pw_uid;
	return 0;
}

/* Adds the members of the group that are users. */
static int
take_members(struct rule *r, char *const *names)
{
	const struct passwd *p;
	size_t n = 0;

	while (names[n] != NULL)
		n++;
	if (n == 0)
		return 0;
	if ((r->members = calloc(n, sizeof(*r->members))) == NULL)
		return -1;
	for (; *names != NULL; names++)
		if ((p = getpwnam(*names)) != NULL)
			r->members[r->n_members++] = p->pw_uid;
	return 0;
}

static int
find_group(struct rule *r, const char *name, char *err, size_t err_size)
{
	const struct group *g;
	bool number = as_number(name, &r->gid);

	g = number ? getgrgid(r->gid) : getgrnam(name);
	if (g == NULL && !number) {
		snprintf(err, err_size, "there is no group \"%s\", which the "
		    "settings name", name);
		return -1;
	}
	r->has_gid = true;
	if (g == NULL)
		return 0;
	r->gid = g->gr_gid;
	if (take_members(r, g->gr_mem) != 0) {
		snprintf(err, err_size, "no memory");
		return -1;
	}
	return 0;
}

static int
make_rule(struct rule *r, const struct rule_setting *s, char *err,
    size_t err_size)
{
	r->name = s->name;
	r->may = roles_widen(s->may);
	r->may_claim_machine = s->may_claim_machine;
	if (s->user != NULL) {
		if (strcmp(s->user, "*") == 0)
			r->any_user = true;
		else if (find_user(s->user, &r->uid, err, err_size) != 0)
			return -1;
		else
			r->has_uid = true;
	}
	if (s->group != NULL)
		return find_group(r, s->group, err, err_size);
	return 0;
}

struct trust *
trust_new(const struct settings *s, char *err, size_t err_size)
{
	struct trust *t;
	size_t i;

	if ((t = calloc(1, sizeof(*t))) == NULL ||
	    (t->rules = calloc(s->n_rules + 1, sizeof(*t->rules))) == NULL) {
		snprintf(err, err_size, "no memory");
		goto fail;
	}
	t->certificate_default = s->certificate_default;
	t->ignore_certificate_roles = s->ignore_certificate_roles;
	t->own_uid = geteuid();
	if (t->own_uid == 0 && s->user != NULL &&
	    find_user(s->user, &t->own_uid, err, err_size) != 0)
		goto fail;
	for (i = 0; i < s->n_rules; i++) {
		t->n_rules++;
		if (make_rule(&t->rules[i], &s->rules[i], err, err_size) != 0)
			goto fail;
	}
	return t;

fail:
	trust_free(t);
	return NULL;
}

void
trust_free(struct trust *t)
{
	size_t i;

	if (t == NULL)
		return;
	for (i = 0; i < t->n_rules; i++)
		free(t->rules[i].members);
	free(t->rules);
	free(t);
}

/* ---- asking it ---- */

static bool
fits_certificate(const char *pattern, const struct tls_identity *cert)
{
	size_t i;

	if (glob_match(pattern, cert->name))
		return true;
	for (i = 0; i < cert->n_alternatives; i++)
		if (glob_match(pattern, cert->alternatives[i]))
			return true;
	return false;
}

static bool
is_in_group(const struct rule *r, const struct peer *p)
{
	size_t i;

	if (p->gid == r->gid)
		return true;
	for (i = 0; i < r->n_members; i++)
		if (r->members[i] == p->uid)
			return true;
	return false;
}

static bool
fits(const struct rule *r, const struct peer *p)
{
	switch (p->auth) {
	case PEER_NOBODY:
		return false;
	case PEER_CERT:
		return r->name != NULL && !r->any_user && !r->has_uid &&
		    !r->has_gid && fits_certificate(r->name, p->cert);
	case PEER_UNIX:
		return r->name == NULL &&
		    (!r->has_uid || r->uid == p->uid) &&
		    (!r->has_gid || is_in_group(r, p));
	}
	return false;
}

static const struct rule *
first_rule(const struct trust *t, const struct peer *p)
{
	size_t i;

	if (t == NULL)
		return NULL;
	for (i = 0; i < t->n_rules; i++)
		if (fits(&t->rules[i], p))
			return &t->rules[i];
	return NULL;
}

static uint32_t
roles_of_certificate(const struct trust *t, const struct tls_identity *cert)
{
	if (cert->roles != 0 && (t == NULL || !t->ignore_certificate_roles))
		return cert->roles & ROLES_ALL;
	return t != NULL ? t->certificate_default :
	    ROLE_PRODUCER | ROLE_RELAY;
}

uint32_t
trust_roles(const struct trust *t, const struct peer *p, bool plain_consumer)
{
	const struct rule *r = first_rule(t, p);
	uint32_t roles = ROLE_PRODUCER | ROLE_RELAY;

	if (r != NULL)
		return r->may;
	switch (p->auth) {
	case PEER_NOBODY:
		if (plain_consumer)
			roles |= ROLE_CONSUMER;
		break;
	case PEER_CERT:
		roles = roles_of_certificate(t, p->cert);
		break;
	case PEER_UNIX:
		roles |= ROLE_CONSUMER;
		if (p->uid == 0 ||
		    p->uid == (t != NULL ? t->own_uid : geteuid()))
			roles |= ROLE_ADMIN;
		break;
	}
	return roles_widen(roles);
}

bool
trust_may_claim_machine(const struct trust *t, const struct peer *p)
{
	const struct rule *r;

	if (p->auth != PEER_CERT)
		return true;
	r = first_rule(t, p);
	return r != NULL && r->may_claim_machine;
}

/* ---- saying why not ---- */

/* The word that the settings have for a role. */
static const char *
setting_of(enum role role)
{
	switch (role) {
	case ROLE_PRODUCER:
		return "PRODUCER";
	case ROLE_RELAY:
		return "RELAY";
	case ROLE_CONSUMER:
		return "CONSUMER";
	case ROLE_ADMIN:
		return "ADMIN";
	}
	return "?";
}

void
trust_refusal(const struct peer *p, uint32_t has, enum role wanted, char *out,
    size_t out_size)
{
	char name[72] = "", roles[48];

	roles_text(has, roles, sizeof(roles));
	switch (p->auth) {
	case PEER_CERT:
		log_escape(name, sizeof(name), p->cert->name,
		    strlen(p->cert->name));
		snprintf(out, out_size, "the certificate \"%s\"%s may be %s, "
		    "not %s: have it issued with --role %s, or add to the "
		    "settings: trust { name: \"%s\" may: %s }", name,
		    p->cert->roles & ROLE_UNKNOWN ?
		    " (it has an unknown role)" : "", roles, role_name(wanted),
		    role_name(wanted), name, setting_of(wanted));
		break;
	case PEER_UNIX:
		snprintf(out, out_size, "uid %u may be %s, not %s: a rule of "
		    "the settings says so; trust { user: \"%u\" may: %s } "
		    "before it would allow it", (unsigned)p->uid, roles,
		    role_name(wanted), (unsigned)p->uid, setting_of(wanted));
		break;
	case PEER_NOBODY:
		snprintf(out, out_size, "the peer is not authenticated, so it "
		    "may be %s, not %s: connect with a certificate (tls://), "
		    "through a UNIX socket or ssh%s", roles,
		    role_name(wanted), wanted == ROLE_CONSUMER ?
		    ", or to a socket with allow_plain_consumer" : "");
		break;
	}
}
