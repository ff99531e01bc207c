/*
 * A certificate, as it comes over the wire: who it says its holder is, is text
 * that a log may hold, or there is a reason why it is not taken.
 */
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/messages/messages.h"
#include "transport/socket/roles.h"
#include "transport/tls/tls_identity.h"

static void
check(const struct tls_identity *id)
{
	size_t i;

	if (memchr(id->name, '\0', sizeof(id->name)) == NULL ||
	    memchr(id->serial, '\0', sizeof(id->serial)) == NULL ||
	    id->n_alternatives > TLS_ALTERNATIVES_MAX ||
	    (id->roles & ~(ROLES_ALL | ROLE_UNKNOWN)) != 0)
		abort();
	for (i = 0; i < id->n_alternatives; i++)
		if (strlen(id->alternatives[i]) > TLS_ALTERNATIVE_BYTES)
			abort();
}

void
fuzz_certificate(const uint8_t *data, size_t size)
{
	const unsigned char *p = data;
	const char *why = NULL;
	struct tls_identity id;
	X509 *cert;

	if ((cert = d2i_X509(NULL, &p, (long)size)) == NULL)
		return;
	memset(&id, 0x55, sizeof(id));
	if (tls_identity_init(&id, cert, &why) == 0) {
		check(&id);
		tls_identity_done(&id);
	} else if (why == NULL) {
		abort();
	}
	X509_free(cert);
}
