/*
 * place: where devices connect to, and what they show there.
 */
#ifndef TESTS_BENCH_LOAD_PLACE_H
#define TESTS_BENCH_LOAD_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"
#include "transport/connect/dial.h"
#include "transport/connect/dial_name.h"
#include "transport/socket/addr.h"

struct tls_context;

/* Certificates of devices that are told apart; more devices share them. */
#define PLACE_CERTS_MAX 16384u

struct place {
	struct addr addr;
	struct dial_options how; /* its strings are borrowed */
	bool no_shm;             /* a UNIX socket, as if it were a tunnel */
	/* tls:// with a certificate for each device: dialled as TCP. */
	struct addr tcp;
	char server_name[DIAL_NAME_MAX]; /* and asked for this */
	struct tls_context **certs; /* owned; NULL: one for all */
	size_t n_certs;
};

/*
 * certs_dir: a folder with a folder (ca.pem, cert.pem, key.pem) for each
 * device, or NULL.  -1 with a sentence in err.
 */
int place_init(struct place *p, const char *address,
    const struct dial_options *how, const char *certs_dir, bool no_shm,
    char *err, size_t err_size) MUST_CHECK;
void place_done(struct place *p);

#endif /* TESTS_BENCH_LOAD_PLACE_H */
