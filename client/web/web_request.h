/*
 * web_request: what is asked, by whom, and whether that may be: query strings,
 * and the headers Host, Origin, Sec-Fetch-Site, Accept and Authorization.
 * Pure; input is hostile.
 */
#ifndef CLIENT_WEB_WEB_REQUEST_H
#define CLIENT_WEB_WEB_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/metrics/metrics_text.h"
#include "transport/base/compiler.h"

/* Names of a host that are answered to. */
#define WEB_HOSTS_MAX 64u
#define WEB_HOST_MAX  300u
/* Bytes of a search; and of a token. */
#define WEB_SEARCH_MAX 128u
#define WEB_TOKEN_MAX  512u
/* Room for a machine's name (255 bytes), and for one byte more. */
#define WEB_MACHINE_MAX 257u

/* Bytes of a path of a segment. */
#define WEB_PATH_MAX 1024u

/* A search in the archive, as text that is shown again; "": not asked for. */
struct web_search {
	char machine[WEB_SEARCH_MAX], recording[WEB_SEARCH_MAX];
	char trigger[WEB_SEARCH_MAX], process[WEB_SEARCH_MAX];
	char collector[WEB_SEARCH_MAX];
	char at[WEB_SEARCH_MAX], around[WEB_SEARCH_MAX];
	char from[WEB_SEARCH_MAX], to[WEB_SEARCH_MAX];
	bool lost;
	char path[WEB_PATH_MAX]; /* of one segment; anything, so far */
};

/* The queries of the overview, of the metrics and of the archive. */
struct web_query {
	char search[WEB_SEARCH_MAX]; /* for machines; "": all */
	uint32_t page;               /* of machines or segments, from 1 */
	uint32_t refresh_s;          /* 0: it does not refresh by itself */
	struct web_search archive;
	/* A machine whose metrics are wanted; one too long is cut, and unknown. */
	bool of_machine;
	char machine[WEB_MACHINE_MAX];
};
#define WEB_REFRESH_S      5u
#define WEB_REFRESH_MOST_S 3600u
#define WEB_PAGE_MOST      100000u

void web_query_init(struct web_query *q);
/*
 * Takes "name=value", decoded.  Names that are unknown are skipped, as proxies
 * and people add some; so are values that make no sense.
 */
void web_query_take(struct web_query *q, const char *part);

/* The names under which this server is reached, each with its port. */
struct web_hosts {
	char names[WEB_HOSTS_MAX][WEB_HOST_MAX];
	size_t n;
	bool tls;
};
/*
 * Adds "NAME" or "[v6]" with the port, and without where it is the scheme's own;
 * "NAME:PORT" has a port of its own, by which something in between is reached.
 * -1: too many, or too long.
 */
int web_hosts_add(struct web_hosts *h, const char *name, unsigned port)
    MUST_CHECK;
/* Whether Host is one of the names; NULL: the header is missing. */
bool web_hosts_has(const struct web_hosts *h, const char *host);
/*
 * Whether a page of this server asks, by Origin, or none (NULL): else another
 * site asks through the browser of one who may.
 */
bool web_hosts_is_origin(const struct web_hosts *h, const char *origin);

/*
 * Whether a page of this server asks, or a person by an address, as far as the
 * browser says, by Sec-Fetch-Site; NULL: it says nothing.  Other sites' images
 * and scripts come without Origin.
 */
bool web_is_own_fetch(const char *site);

/*
 * Whether Authorization has the token: "Bearer TOKEN", or as the password of
 * "Basic".  Takes as long for a wrong one as for the right one.
 */
bool web_authorized(const char *token, const char *authorization);

/* The form that Accept prefers; NULL: no such header. */
enum metrics_form web_metrics_form(const char *accept);

#endif /* CLIENT_WEB_WEB_REQUEST_H */
