#include "transport/tls/tls_identity.h"

#include <arpa/inet.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "transport/socket/roles.h"

/* A name that every reader reads alike. */
static bool
name_is_clear(const unsigned char *s, int len)
{
	int i;

	for (i = 0; i < len; i++)
		if (s[i] < 0x20 || s[i] == 0x7f)
			return false;
	return true;
}

static int
identity_set_name(struct tls_identity *id, const unsigned char *s, int len,
    const char **why)
{
	if (!name_is_clear(s, len)) {
		*why = "holds a name with a NUL or control character in it";
		return -1;
	}
	if ((size_t)len >= sizeof(id->name)) {
		*why = "holds a name of more than 127 bytes";
		return -1;
	}
	memcpy(id->name, s, (size_t)len);
	id->name[len] = '\0';
	return 0;
}

static int
identity_take_cn(struct tls_identity *id, X509 *cert, const char **why)
{
	X509_NAME *subject = X509_get_subject_name(cert);
	int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
	unsigned char *utf8 = NULL;
	int len, rc;

	if (at < 0)
		return 0;
	len = ASN1_STRING_to_UTF8(&utf8,
	    X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
	if (len < 0) {
		*why = "has a CN that is no text";
		return -1;
	}
	rc = identity_set_name(id, utf8, len, why);
	OPENSSL_free(utf8);
	return rc;
}

static int
identity_add(struct tls_identity *id, const char *s, size_t len,
    const char **why)
{
	if (id->n_alternatives == TLS_ALTERNATIVES_MAX)
		return 0;
	id->alternatives[id->n_alternatives] = strndup(s, len);
	if (id->alternatives[id->n_alternatives] == NULL) {
		*why = "cannot be read: out of memory";
		return -1;
	}
	id->n_alternatives++;
	return 0;
}

static int
identity_add_address(struct tls_identity *id, const ASN1_OCTET_STRING *ip,
    const char **why)
{
	const unsigned char *bytes = ASN1_STRING_get0_data(ip);
	int len = ASN1_STRING_length(ip);
	char text[INET6_ADDRSTRLEN];

	if ((len != 4 && len != 16) || inet_ntop(len == 4 ? AF_INET : AF_INET6,
		bytes, text, sizeof(text)) == NULL) {
		*why = "holds an IP address of a length that none has";
		return -1;
	}
	return identity_add(id, text, strlen(text), why);
}

static int
identity_add_text(struct tls_identity *id, int type, const ASN1_IA5STRING *s,
    const char **why)
{
	const unsigned char *bytes = ASN1_STRING_get0_data(s);
	int len = ASN1_STRING_length(s);
	uint32_t role = 0;

	if (!name_is_clear(bytes, len)) {
		*why = "holds a name with a NUL or control character in it";
		return -1;
	}
	if (len > TLS_ALTERNATIVE_BYTES) {
		*why = "holds an alternative name of more than 512 bytes";
		return -1;
	}
	if (type == GEN_URI)
		role = role_from_uri((const char *)bytes, (size_t)len);
	id->roles |= role;
	/* A role is no name. */
	if (id->name[0] == '\0' && type != GEN_EMAIL && role == 0 &&
	    identity_set_name(id, bytes, len, why) != 0)
		return -1;
	return identity_add(id, (const char *)bytes, (size_t)len, why);
}

static int
identity_take_alternatives(struct tls_identity *id, X509 *cert,
    const char **why)
{
	GENERAL_NAMES *names;
	GENERAL_NAME *name;
	int i, n, type, found, rc = 0;
	void *value;

	names = X509_get_ext_d2i(cert, NID_subject_alt_name, &found, NULL);
	if (names == NULL && found == -1)
		return 0;
	if (names == NULL) {
		*why = "has alternative names that cannot be read";
		return -1;
	}
	n = sk_GENERAL_NAME_num(names);
	id->alternatives = calloc(
	    (size_t)(n < TLS_ALTERNATIVES_MAX ? n + 1 : TLS_ALTERNATIVES_MAX),
	    sizeof(*id->alternatives));
	if (id->alternatives == NULL) {
		*why = "cannot be read: out of memory";
		rc = -1;
	}
	for (i = 0; i < n && rc == 0; i++) {
		name = sk_GENERAL_NAME_value(names, i);
		value = GENERAL_NAME_get0_value(name, &type);
		if (type == GEN_IPADD)
			rc = identity_add_address(id, value, why);
		else if (type == GEN_DNS || type == GEN_URI ||
		    type == GEN_EMAIL)
			rc = identity_add_text(id, type, value, why);
	}
	GENERAL_NAMES_free(names);
	return rc;
}

static int
identity_take_serial(struct tls_identity *id, X509 *cert, const char **why)
{
	BIGNUM *n = ASN1_INTEGER_to_BN(X509_get0_serialNumber(cert), NULL);
	char *hex = n == NULL ? NULL : BN_bn2hex(n);

	BN_free(n);
	if (hex == NULL || strlen(hex) >= sizeof(id->serial)) {
		*why = "has a serial number that no authority may give";
		OPENSSL_free(hex);
		return -1;
	}
	strcpy(id->serial, hex);
	OPENSSL_free(hex);
	return 0;
}

time_t
tls_identity_time(const ASN1_TIME *t)
{
	struct tm tm;

	if (t == NULL || ASN1_TIME_to_tm(t, &tm) != 1)
		return 0;
	return timegm(&tm);
}

int
tls_identity_init(struct tls_identity *id, X509 *cert, const char **why)
{
	memset(id, 0, sizeof(*id));
	id->not_after = tls_identity_time(X509_get0_notAfter(cert));
	if (identity_take_serial(id, cert, why) != 0 ||
	    identity_take_cn(id, cert, why) != 0 ||
	    identity_take_alternatives(id, cert, why) != 0) {
		tls_identity_done(id);
		return -1;
	}
	return 0;
}

void
tls_identity_done(struct tls_identity *id)
{
	size_t i;

	for (i = 0; i < id->n_alternatives; i++)
		free(id->alternatives[i]);
	free(id->alternatives);
	X509_free(id->leaf);
	sk_X509_pop_free(id->chain, X509_free);
	memset(id, 0, sizeof(*id));
}

void
tls_identity_free(struct tls_identity *id)
{
	if (id == NULL)
		return;
	tls_identity_done(id);
	free(id);
}
