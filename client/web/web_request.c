#include "client/web/web_request.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "protos/utf8.h"

#define HTTP_PORT  80u
#define HTTPS_PORT 443u

/* ---- queries ---- */

void
web_query_init(struct web_query *q)
{
	memset(q, 0, sizeof(*q));
	q->page = 1;
	q->refresh_s = WEB_REFRESH_S;
}

static void
take_number(const char *text, uint32_t least, uint32_t most, uint32_t *out)
{
	unsigned long v;
	char *end;

	if (text[0] < '0' || text[0] > '9' || strlen(text) > 9)
		return;
	v = strtoul(text, &end, 10);
	if (*end == '\0' && v >= least && v <= most)
		*out = (uint32_t)v;
}

/* Whole characters only; those that cannot be shown are left out. */
static void
take_text(const char *text, char *out, size_t size)
{
	size_t len = strlen(text), used, n = 0;

	while (len > 0) {
		used = utf8_printable(text, len);
		if (n + used >= size)
			break;
		memcpy(out + n, text, used);
		n += used;
		used = used == 0 ? 1 : used;
		text += used;
		len -= used;
	}
	out[n] = '\0';
}

/* False: it is no condition of a search. */
static bool
take_condition(struct web_search *s, const char *part)
{
	const struct {
		const char *name;
		char *out;
		size_t size;
	} all[] = {
		{ "machine=", s->machine, sizeof(s->machine) },
		{ "recording=", s->recording, sizeof(s->recording) },
		{ "trigger=", s->trigger, sizeof(s->trigger) },
		{ "process=", s->process, sizeof(s->process) },
		{ "collector=", s->collector, sizeof(s->collector) },
		{ "at=", s->at, sizeof(s->at) },
		{ "around=", s->around, sizeof(s->around) },
		{ "from=", s->from, sizeof(s->from) },
		{ "to=", s->to, sizeof(s->to) },
		{ "path=", s->path, sizeof(s->path) },
	};
	size_t i, n;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		n = strlen(all[i].name);
		if (strncmp(part, all[i].name, n) != 0)
			continue;
		take_text(part + n, all[i].out, all[i].size);
		return true;
	}
	return false;
}

void
web_query_take(struct web_query *q, const char *part)
{
	/* A condition of the archive, and for metrics the very bytes. */
	if (strncmp(part, "machine=", 8) == 0)
		q->of_machine = snprintf(q->machine, sizeof(q->machine), "%s",
		    part + 8) >= 0;
	if (take_condition(&q->archive, part))
		return;
	if (strncmp(part, "q=", 2) == 0)
		take_text(part + 2, q->search, sizeof(q->search));
	else if (strcmp(part, "lost=1") == 0)
		q->archive.lost = true;
	else if (strncmp(part, "page=", 5) == 0)
		take_number(part + 5, 1, WEB_PAGE_MOST, &q->page);
	else if (strncmp(part, "refresh=", 8) == 0)
		take_number(part + 8, 0, WEB_REFRESH_MOST_S, &q->refresh_s);
}

/* ---- Host and Origin ---- */

static int
add(struct web_hosts *h, const char *name, const char *port)
{
	int n;

	if (h->n == WEB_HOSTS_MAX)
		return -1;
	n = snprintf(h->names[h->n], WEB_HOST_MAX, "%s%s", name, port);
	if (n < 0 || (size_t)n >= WEB_HOST_MAX)
		return -1;
	h->n++;
	return 0;
}

int
web_hosts_add(struct web_hosts *h, const char *name, unsigned port)
{
	const char *own = name[0] == '[' ? NULL : strchr(name, ':');
	char text[16], host[WEB_HOST_MAX];

	if (own != NULL) {
		if ((size_t)(own - name) >= sizeof(host))
			return -1;
		snprintf(host, sizeof(host), "%.*s", (int)(own - name), name);
		port = (unsigned)strtoul(own + 1, NULL, 10);
		name = host;
	}
	snprintf(text, sizeof(text), ":%u", port);
	if (add(h, name, text) != 0)
		return -1;
	return port == (h->tls ? HTTPS_PORT : HTTP_PORT) ? add(h, name, "") : 0;
}

bool
web_hosts_has(const struct web_hosts *h, const char *host)
{
	size_t i;

	for (i = 0; host != NULL && i < h->n; i++)
		if (strcasecmp(host, h->names[i]) == 0)
			return true;
	return false;
}

bool
web_hosts_is_origin(const struct web_hosts *h, const char *origin)
{
	const char *scheme = h->tls ? "https://" : "http://";

	if (origin == NULL)
		return true;
	return strncasecmp(origin, scheme, strlen(scheme)) == 0 &&
	    web_hosts_has(h, origin + strlen(scheme));
}

bool
web_is_own_fetch(const char *site)
{
	return site == NULL || strcmp(site, "same-origin") == 0 ||
	    strcmp(site, "none") == 0;
}

/* ---- Authorization ---- */

/* Compares as many bytes, whatever they are. */
static bool
is_token(const char *token, const char *given)
{
	char a[WEB_TOKEN_MAX] = "", b[WEB_TOKEN_MAX] = "";

	if (strlen(token) >= WEB_TOKEN_MAX || strlen(given) >= WEB_TOKEN_MAX)
		return false;
	strcpy(a, token);
	strcpy(b, given);
	return CRYPTO_memcmp(a, b, sizeof(a)) == 0;
}

static bool
is_basic(const char *token, const char *text)
{
	unsigned char out[WEB_TOKEN_MAX * 2];
	size_t len = strlen(text);
	const char *password;
	int n;

	if (len == 0 || len % 4 != 0 || len / 4 * 3 >= sizeof(out))
		return false;
	n = EVP_DecodeBlock(out, (const unsigned char *)text, (int)len);
	if (n < 0)
		return false;
	out[n] = '\0';
	/* Padding is decoded into NULs, which end the password as well. */
	password = strchr((const char *)out, ':');
	return password != NULL && is_token(token, password + 1);
}

bool
web_authorized(const char *token, const char *authorization)
{
	if (authorization == NULL)
		return false;
	if (strncasecmp(authorization, "Bearer ", 7) == 0)
		return is_token(token, authorization + 7);
	if (strncasecmp(authorization, "Basic ", 6) == 0)
		return is_basic(token, authorization + 6);
	return false;
}

enum metrics_form
web_metrics_form(const char *accept)
{
	return accept != NULL &&
	    strstr(accept, "application/openmetrics-text") != NULL ?
	    METRICS_OPENMETRICS : METRICS_PROMETHEUS;
}
