#include "tests/unit/transport/tls/tls_world.h"

#include <stdio.h>
#include <stdlib.h>

const struct fix_wish world_collector = {
	.cn = "collector",
	.eku = "serverAuth",
	.sans = "DNS:collector,DNS:collector.lan,IP:127.0.0.1,IP:::1",
};

const struct fix_wish world_device = {
	.cn = "device-7",
	.eku = "clientAuth",
	.role = "producer",
	.sans = "email:ops@example.org",
};

int
tls_world_setup(void **state)
{
	struct tls_world *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return -1;
	w->ca = fix_ca("Test CA");
	w->collector = fix_cert(w->ca, &world_collector);
	w->device = fix_cert(w->ca, &world_device);
	w->server_dir = fix_side(w->ca, w->collector);
	w->client_dir = fix_side(w->ca, w->device);
	w->server = fix_context(TLS_SERVER, w->server_dir);
	w->client = fix_context(TLS_CLIENT, w->client_dir);
	*state = w;
	return 0;
}

int
tls_world_teardown(void **state)
{
	struct tls_world *w = *state;

	tls_context_free(w->server);
	tls_context_free(w->client);
	fix_dir_free(w->server_dir);
	fix_dir_free(w->client_dir);
	fix_cert_free(w->collector);
	fix_cert_free(w->device);
	fix_cert_free(w->ca);
	free(w);
	return 0;
}

void
tls_world_reload(struct tls_context *c)
{
	char err[TLS_ERROR_SIZE] = "";

	if (tls_context_reload(c, err, sizeof(err)) == 0)
		return;
	fprintf(stderr, "%s\n", err);
	abort();
}

static void
side_is(const char *dir, struct tls_context *c, const struct fix_cert *cert)
{
	fix_write_certs(dir, TLS_CERT_FILE, cert, NULL, NULL);
	fix_write_key(dir, TLS_KEY_FILE, cert);
	tls_world_reload(c);
}

void
tls_world_server_is(struct tls_world *w, const struct fix_cert *cert)
{
	side_is(w->server_dir, w->server, cert);
}

void
tls_world_client_is(struct tls_world *w, const struct fix_cert *cert)
{
	side_is(w->client_dir, w->client, cert);
}

void
tls_world_allow_tls12(struct tls_world *w, bool server, bool client)
{
	struct tls_options s = { .side = TLS_SERVER, .dir = w->server_dir,
		.allow_tls12 = server };
	struct tls_options c = { .side = TLS_CLIENT, .dir = w->client_dir,
		.allow_tls12 = client };
	char err[TLS_ERROR_SIZE];

	tls_context_free(w->server);
	tls_context_free(w->client);
	w->server = tls_context_new(&s, err, sizeof(err));
	w->client = tls_context_new(&c, err, sizeof(err));
	if (w->server == NULL || w->client == NULL) {
		fprintf(stderr, "%s\n", err);
		abort();
	}
}
