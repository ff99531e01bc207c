#include "client/cert/show.h"

#include <inttypes.h>
#include <openssl/bn.h>
#include <openssl/x509.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/cert/pem.h"
#include "client/cert/store.h"
#include "client/cert/x509_make.h"
#include "client/cert/x509_text.h"
#include "client/text/text_width.h"
#include "protos/json_out.h"
#include "transport/base/human_numbers.h"
#include "transport/socket/roles.h"
#include "transport/tls/tls.h"

#define STATE_SIZE 64
#define DAY (24 * 60 * 60)

/* One certificate of a folder, as it is shown. */
struct row {
	struct cert_entry entry;
	const char *role; /* of the CA: "ca" */
	bool unlisted;    /* revoked, and not in crl.pem */
};

/* A word for programs. */
static const char *
state_word(const struct cert_entry *e, time_t now)
{
	if (e->state == CERT_REVOKED)
		return "revoked";
	if (e->until <= now)
		return "expired";
	if (e->from > now)
		return "not-yet-valid";
	return cert_state_text(e->state);
}

/* "valid", "expires in 3 days", "expired", "revoked"...; returns out. */
static const char *
state_text(const struct cert_entry *e, time_t now,
    char out[STATE_SIZE])
{
	const char *word = state_word(e, now);
	int64_t days = ((int64_t)e->until - now) / DAY;

	if (strcmp(word, "revoked") == 0 &&
	    e->reason != CERT_REASON_UNSPECIFIED)
		snprintf(out, STATE_SIZE, "revoked (%s)",
		    cert_reason_text(e->reason));
	else if (strcmp(word, "not-yet-valid") == 0)
		snprintf(out, STATE_SIZE, "not valid yet");
	else if (strcmp(word, "valid") == 0 && days < CERT_SHOW_SOON_DAYS)
		snprintf(out, STATE_SIZE,
		    "expires in %" PRId64 " day%s", days,
		    human_s((uint64_t)days));
	else
		snprintf(out, STATE_SIZE, "%s", word);
	return out;
}

/* Folders. */

static void
print_row(FILE *out, const struct row *r, int width, time_t now)
{
	char from[CERT_TIME_SIZE], until[CERT_TIME_SIZE];
	char state[STATE_SIZE];
	int pad = width - text_width(r->entry.name);

	fprintf(out, "%s%*s  %-9s  %-32s  %.10s  %.10s  %s%s\n", r->entry.name,
	    pad > 0 ? pad : 0, "", r->role, r->entry.serial,
	    cert_time_text(r->entry.from, from),
	    cert_time_text(r->entry.until, until),
	    state_text(&r->entry, now, state),
	    r->unlisted ? ", but not in crl.pem: revoke it again" : "");
}

static void
json_row(struct json_out *j, const struct row *r, time_t now)
{
	const struct cert_entry *e = &r->entry;
	char text[CERT_TIME_SIZE];

	json_object(j, NULL);
	json_string(j, "name", e->name);
	json_string(j, "role", r->role);
	json_string(j, "serial", e->serial);
	json_string(j, "from", cert_time_text(e->from, text));
	json_string(j, "until", cert_time_text(e->until, text));
	json_string(j, "state", state_word(e, now));
	json_int(j, "days_left", ((int64_t)e->until - now) / DAY);
	if (e->state == CERT_REVOKED) {
		json_string(j, "revoked", cert_time_text(e->revoked, text));
		json_string(j, "reason", cert_reason_text(e->reason));
		json_bool(j, "listed", !r->unlisted);
	}
	json_object_end(j);
}

static bool
is_listed(X509_CRL *crl, const char *serial)
{
	ASN1_INTEGER *number = NULL;
	X509_REVOKED *found = NULL;
	BIGNUM *n = NULL;

	if (crl != NULL && BN_hex2bn(&n, serial) > 0 &&
	    (number = BN_to_ASN1_INTEGER(n, NULL)) != NULL)
		X509_CRL_get0_by_serial(crl, &found, number);
	ASN1_INTEGER_free(number);
	BN_free(n);
	return found != NULL;
}

static X509_CRL *
crl_of(const struct cert_store *s)
{
	char *path = cert_store_path(s, TLS_CRL_FILE);
	char ignored[CERT_ERROR_SIZE];
	X509_CRL *crl = NULL;

	if (path != NULL)
		crl = cert_pem_read_crl(path, ignored, sizeof(ignored));
	free(path);
	return crl;
}

static void
row_of_ca(struct row *r, X509 *ca)
{
	*r = (struct row){ .role = "ca" };
	x509_make_serial(ca, r->entry.serial);
	r->entry.from = x509_make_from(ca);
	r->entry.until = x509_make_until(ca);
	x509_text_common_name(ca, r->entry.name, sizeof(r->entry.name));
}

int
cert_show_folder(FILE *out, const char *dir, bool json, time_t now, char *err,
    size_t err_size)
{
	struct json_out j = { .out = out, .row = "\n  " };
	struct cert_store *s = cert_store_look(dir, err, err_size);
	const struct cert_index *x;
	X509_CRL *crl;
	int width = 4, w;
	struct row r;
	size_t i;

	if (s == NULL)
		return -1;
	x = cert_store_index(s);
	crl = crl_of(s);
	row_of_ca(&r, cert_store_ca(s));
	for (i = 0; i < x->n; i++)
		if ((w = text_width(x->entries[i].name)) > width)
			width = w;
	if ((w = text_width(r.entry.name)) > width)
		width = w;
	if (!json)
		fprintf(out, "%-*s  %-9s  %-32s  %-10s  %-10s  %s\n", width,
		    "NAME", "ROLE", "SERIAL", "FROM", "UNTIL", "STATE");
	else
		json_array(&j, NULL);
	for (i = 0;; i++) {
		if (json)
			json_row(&j, &r, now);
		else
			print_row(out, &r, width, now);
		if (i == x->n)
			break;
		r.entry = x->entries[i];
		r.role = cert_role_text(r.entry.role);
		r.unlisted = r.entry.state == CERT_REVOKED &&
		    !is_listed(crl, r.entry.serial);
	}
	if (json) {
		json_array_end(&j);
		fputc('\n', out);
	}
	X509_CRL_free(crl);
	cert_store_free(s);
	return 0;
}

/* Files. */

/* j: NULL for people. */
static void
print_field(FILE *out, struct json_out *j, const char *name, const char *text)
{
	if (j != NULL)
		json_string(j, name, text);
	else
		fprintf(out, "%-12s %s\n", name, text);
}

static void
show_certificate(FILE *out, X509 *x, struct json_out *j, time_t now)
{
	char text[X509_TEXT_SIZE], state[STATE_SIZE];
	struct cert_entry e = { 0 };
	char time[CERT_TIME_SIZE];
	uint32_t roles;

	x509_make_serial(x, e.serial);
	e.from = x509_make_from(x);
	e.until = x509_make_until(x);
	if (j != NULL) {
		json_object(j, NULL);
		json_string(j, "kind", "certificate");
	}
	x509_text_subject(x, text, sizeof(text));
	print_field(out, j, "subject", text);
	x509_text_issuer(x, text, sizeof(text));
	print_field(out, j, "issuer", text);
	print_field(out, j, "serial", e.serial);
	roles = x509_text_names(x, text, sizeof(text));
	print_field(out, j, "role",
	    roles == 0 ? "none" : roles_text(roles, state, sizeof(state)));
	print_field(out, j, "names", text);
	print_field(out, j, "from", cert_time_text(e.from, time));
	print_field(out, j, "until", cert_time_text(e.until, time));
	print_field(out, j, "state", j != NULL ? state_word(&e, now) :
	    state_text(&e, now, state));
	print_field(out, j, "key", x509_text_key(x));
	print_field(out, j, "may", x509_text_purpose(x));
	x509_text_fingerprint(x, text, sizeof(text));
	print_field(out, j, "sha256", text);
	if (j != NULL)
		json_object_end(j);
}

static void
show_crl(FILE *out, X509_CRL *crl, struct json_out *j)
{
	STACK_OF(X509_REVOKED) *all = X509_CRL_get_REVOKED(crl);
	char text[X509_TEXT_SIZE], time[CERT_TIME_SIZE];
	int i, n = all == NULL ? 0 : sk_X509_REVOKED_num(all);

	if (j != NULL) {
		json_object(j, NULL);
		json_string(j, "kind", "crl");
	}
	x509_text_crl_issuer(crl, text, sizeof(text));
	print_field(out, j, "issuer", text);
	snprintf(text, sizeof(text), "%" PRIu64, x509_make_crl_number(crl));
	print_field(out, j, "number", text);
	print_field(out, j, "from",
	    cert_time_text(x509_text_time(X509_CRL_get0_lastUpdate(crl)),
		time));
	print_field(out, j, "until",
	    cert_time_text(x509_text_time(X509_CRL_get0_nextUpdate(crl)),
		time));
	if (j != NULL)
		json_array(j, "revoked");
	for (i = 0; i < n; i++) {
		x509_text_revoked(sk_X509_REVOKED_value(all, i), text,
		    sizeof(text), time);
		if (j == NULL) {
			fprintf(out, "%-12s %s  %s\n", "revoked", text, time);
			continue;
		}
		json_object(j, NULL);
		json_string(j, "serial", text);
		json_string(j, "when", time);
		json_object_end(j);
	}
	if (j != NULL) {
		json_array_end(j);
		json_object_end(j);
	}
}

int
cert_show_file(FILE *out, const char *path, bool json, time_t now, char *err,
    size_t err_size)
{
	struct json_out j = { .out = out, .row = "\n  " };
	struct x509_text_file *f = x509_text_file_open(path, err, err_size);
	X509_CRL *crl;
	size_t n = 0;
	X509 *x;

	if (f == NULL)
		return -1;
	if (json)
		json_array(&j, NULL);
	while (x509_text_file_next(f, &x, &crl)) {
		if (n++ > 0 && !json)
			fprintf(out, "\n");
		if (x != NULL)
			show_certificate(out, x, json ? &j : NULL, now);
		else
			show_crl(out, crl, json ? &j : NULL);
		X509_free(x);
		X509_CRL_free(crl);
	}
	if (json) {
		json_array_end(&j);
		fputc('\n', out);
	}
	x509_text_file_close(f);
	return 0;
}
