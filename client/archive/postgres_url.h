/*
 * postgres_url: the address of a shared catalogue, postgresql://..., as libpq
 * has it, and as people may see it: without a password.  Opens nothing.
 */
#ifndef CLIENT_ARCHIVE_POSTGRES_URL_H
#define CLIENT_ARCHIVE_POSTGRES_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/base/compiler.h"

#define POSTGRES_NAME_MAX 512

/* Whether it says that it is one. */
bool postgres_url_is(const char *text);
/*
 * Checks it, and writes its name, with which psql and our commands get there
 * when the password is elsewhere (~/.pgpass).  -1 with a sentence, which has no
 * password in it.
 */
int postgres_url_name(const char *url, char out[POSTGRES_NAME_MAX], char *err,
    size_t err_size) MUST_CHECK;
/*
 * Where its server is: host is "" where it is on this machine; the caller's.
 * NULL: no memory, or no such URL.
 */
char *postgres_url_host(const char *url) MUST_CHECK;

#endif /* CLIENT_ARCHIVE_POSTGRES_URL_H */
