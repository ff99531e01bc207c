/*
 * show: prints the list of a CA and the contents of certificates, for people
 * and for programs (JSON).  Keys are never shown.
 */
#ifndef CLIENT_CERT_SHOW_H
#define CLIENT_CERT_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include "transport/base/compiler.h"

/* A certificate is said to expire from this many days before its end. */
#define CERT_SHOW_SOON_DAYS 30

/* One line a certificate, the CA first.  -1 with a sentence. */
int cert_show_folder(FILE *out, const char *dir, bool json, time_t now,
    char *err, size_t err_size) MUST_CHECK;
/* Every certificate of a file in full, or a revocation list. */
int cert_show_file(FILE *out, const char *path, bool json, time_t now,
    char *err, size_t err_size) MUST_CHECK;

#endif /* CLIENT_CERT_SHOW_H */
