/*
 * web_options: reads tributary-web's command line, and refuses what is unsafe.
 *
 * A client that reaches the page sees all that the collector tells us.  So off
 * the loopback interface there is none without TLS, and none without a token or
 * certificates of clients.
 */
#ifndef CLIENT_WEB_WEB_OPTIONS_H
#define CLIENT_WEB_WEB_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "client/command/command_line.h"
#include "client/web/web_open.h"
#include "client/web/web_request.h"
#include "transport/base/compiler.h"
#include "transport/base/flags.h"
#include "transport/base/log.h"
#include "transport/socket/addr.h"

#define WEB_ERROR_SIZE 2048

/* The port is that which Perfetto's UI looks for a recorder at. */
#define WEB_LISTEN "127.0.0.1:8037"

/* Perfetto's UI, where --ui names no other copy. */
#define WEB_UI "https://ui.perfetto.dev"

#define WEB_ORIGINS_MAX 16u

/* Addresses of the name that it listens at. */
#define WEB_ADDRESSES_MAX 8u

struct web_options {
	struct command_line line; /* the way to the collector */
	const char *listen; /* NULL before web_options_check(): not given */
	const char *https_cert, *https_key; /* NULL: no TLS */
	const char *client_ca;    /* NULL: clients need no certificate */
	const char *client_crl;   /* NULL: none of them is revoked */
	const char *token_file;   /* NULL: none */
	const char *names[WEB_HOSTS_MAX]; /* --name: of this host, for Host */
	size_t n_names;
	bool traced; /* who may ask may also record, through /traced */
	const char *origins[WEB_ORIGINS_MAX]; /* --origin: beside Perfetto's */
	size_t n_origins;
	const char *ui;   /* origin of the UI that gets traces */
	bool open;        /* shows one file in it, and asks no collector */
	bool no_browser;
	const char *archive; /* folder; NULL: none is shown */
	const char *catalog; /* postgresql://..., instead of it; or NULL */
	bool no_seccomp;
	enum log_level log_level;
	/* Set by web_options_check(). */
	struct web_open file; /* of `open`; the caller closes it */
	struct addr collector, address; /* address: of the listener */
	struct sockaddr_storage resolved[WEB_ADDRESSES_MAX]; /* the same */
	size_t n_resolved;
	bool local; /* only this machine reaches it */
};

extern const struct flags web_options_flags;

/* -1: go on; else the exit status. */
int web_options_parse(struct web_options *o, int argc, char **argv) MUST_CHECK;
/* Resolves names.  -1 with a sentence. */
int web_options_check(struct web_options *o, char *err, size_t err_size)
    MUST_CHECK;
/*
 * Whether pages of this origin may record: those of Perfetto's UI, as its
 * websocket_bridge has them, and those of --origin.  NULL: none is told, which
 * no browser does.
 */
bool web_options_lets_record(const struct web_options *o, const char *origin);
/* Reads the token of a file.  -1 with a sentence: out is undefined. */
int web_options_read_token(const char *path, char out[WEB_TOKEN_MAX], char *err,
    size_t err_size) MUST_CHECK;

#endif /* CLIENT_WEB_WEB_OPTIONS_H */
