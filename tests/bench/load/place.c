#include "tests/bench/load/place.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/tls/tls.h"

static int
is_device(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static int
read_certs(struct place *p, const char *dir, char *err, size_t err_size)
{
	struct tls_options o = { .side = TLS_CLIENT,
		.allow_tls12 = p->how.allow_tls12 };
	struct dirent **names;
	char path[512];
	int i, n, rc = 0;

	if ((n = scandir(dir, &names, is_device, versionsort)) <= 0) {
		snprintf(err, err_size, "%s: no folders of devices", dir);
		return -1;
	}
	p->certs = calloc((size_t)n, sizeof(struct tls_context *));
	if (p->certs == NULL || (size_t)n > PLACE_CERTS_MAX) {
		snprintf(err, err_size, "%s: too many devices", dir);
		rc = -1;
	}
	for (i = 0; i < n; i++) {
		if (rc == 0) {
			snprintf(path, sizeof(path), "%s/%s", dir,
			    names[i]->d_name);
			o.dir = path;
			p->certs[i] = tls_context_new(&o, err, err_size);
			rc = p->certs[i] != NULL ? 0 : -1;
			p->n_certs += rc == 0;
		}
		free(names[i]);
	}
	free(names);
	return rc;
}

int
place_init(struct place *p, const char *address,
    const struct dial_options *how, const char *certs_dir, bool no_shm,
    char *err, size_t err_size)
{
	char text[ADDR_TEXT_MAX];

	memset(p, 0, sizeof(*p));
	p->how = *how;
	p->no_shm = no_shm;
	if (addr_parse(&p->addr, address, err, err_size) != 0)
		return -1;
	if (certs_dir == NULL || p->addr.kind != ADDR_TLS)
		return 0;
	snprintf(text, sizeof(text), "%s", strstr(p->addr.text, "://") + 3);
	if (addr_parse(&p->tcp, text, err, err_size) != 0 ||
	    dial_server_name(&p->how, &p->addr, p->server_name, err,
		err_size) != 0)
		return -1;
	return read_certs(p, certs_dir, err, err_size);
}

void
place_done(struct place *p)
{
	size_t i;

	for (i = 0; i < p->n_certs; i++)
		tls_context_free(p->certs[i]);
	free(p->certs);
	p->certs = NULL;
	p->n_certs = 0;
}
