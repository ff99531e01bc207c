/*
 * tls_world: one authority, a collector, a device, and their folders: what
 * most tests of TLS begin with.
 */
#ifndef TESTS_UNIT_TRANSPORT_TLS_TLS_WORLD_H
#define TESTS_UNIT_TRANSPORT_TLS_TLS_WORLD_H

#include "tests/unit/transport/tls/tls_fixture.h"
#include "tests/unit/transport/tls/tls_pair.h"

struct tls_world {
	struct fix_cert *ca; /* "Test CA" */
	struct fix_cert *collector;
	struct fix_cert *device; /* a producer */
	char *server_dir;
	char *client_dir;
	struct tls_context *server;
	struct tls_context *client;
};

extern const struct fix_wish world_collector;
extern const struct fix_wish world_device;

/* For cmocka: *state is the world. */
int tls_world_setup(void **state);
int tls_world_teardown(void **state);

/* Gives a side another certificate, as if it had always had it. */
void tls_world_server_is(struct tls_world *w, const struct fix_cert *cert);
void tls_world_client_is(struct tls_world *w, const struct fix_cert *cert);
/* Reads its folder again. */
void tls_world_reload(struct tls_context *c);
/* Makes both sides anew: which of them takes TLS 1.2, too. */
void tls_world_allow_tls12(struct tls_world *w, bool server, bool client);

#endif /* TESTS_UNIT_TRANSPORT_TLS_TLS_WORLD_H */
