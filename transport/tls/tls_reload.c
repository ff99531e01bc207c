#include "transport/tls/tls_reload.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

#include "transport/tls/tls.h"
#include "transport/tls/tls_identity.h"
#include "transport/tls/tls_setup.h"

void
tls_context_own(const struct tls_context *c, struct tls_own *out)
{
	const struct tls_setup *setup = tls_context_setup(c);
	struct tls_identity id;
	const char *why;

	memset(out, 0, sizeof(*out));
	out->not_after = setup->own_not_after;
	if (tls_identity_init(&id, SSL_CTX_get0_certificate(setup->ssl),
		&why) != 0)
		return;
	snprintf(out->name, sizeof(out->name), "%s", id.name);
	tls_identity_done(&id);
}

static bool
is_listed(const struct tls_setup *setup, X509 *cert)
{
	X509_REVOKED *entry;
	int i;

	/* Looks at the issuer as well as at the number. */
	for (i = 0; i < sk_X509_CRL_num(setup->crls); i++)
		if (X509_CRL_get0_by_cert(sk_X509_CRL_value(setup->crls, i),
			&entry, cert) == 1)
			return true;
	return false;
}

bool
tls_context_revokes(const struct tls_context *c, const struct tls_identity *id)
{
	const struct tls_setup *setup = tls_context_setup(c);
	int i;

	if (setup->crls == NULL)
		return false;
	if (id->leaf != NULL && is_listed(setup, id->leaf))
		return true;
	for (i = 0; i < sk_X509_num(id->chain); i++)
		if (is_listed(setup, sk_X509_value(id->chain, i)))
			return true;
	return false;
}
