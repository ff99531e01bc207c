#include "client/web/web_server.h"

#include <arpa/inet.h>
#include <libwebsockets.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/metrics/metrics_text.h"
#include "client/web/web_archive.h"
#include "client/web/web_options.h"
#include "client/web/web_request.h"
#include "client/web/web_routes.h"
#include "client/web/web_secrets.h"
#include "client/web/web_snapshot.h"
#include "client/web/web_socket.h"
#include "client/web/web_source.h"
#include "client/web/web_traced.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"
#include "transport/connect/listener.h"
#include "transport/loop/loop.h"

/* Bytes of a request's head.  Each connection may be about to send one. */
#define HEAD_BYTES     8192u
/* Seconds for a head, for a step of an answer, between two requests. */
#define HEAD_SECONDS   10u
#define STEP_SECONDS   10
#define IDLE_SECONDS   10
/* A request that waits is answered by the source before. */
#define WAIT_SECONDS   (2 * WEB_ANSWER_MS / 1000 + 5)
/* A job may wait for others that take long. */
#define JOB_SECONDS    300
/* A browser may rest while it works on what it has of a file. */
#define FILE_STEP_SECONDS 60
/* Bytes that are handed to the socket in one go; and of an answer's head. */
#define STEP_BYTES     16384u
#define ANSWER_HEAD    2048u
#define VALUE_MAX      1024u
#define QUERY_PARTS    16
#define STATUSES       16u
/* Microseconds between two looks whether a file was read by its peer. */
#define LOOK_USECS     20000
/* And whether the peer that waits for a job is still there. */
#define GONE_USECS     500000
#define STATUS_HEADER_TOO_LARGE 431
/* Bytes that are read at a time. */
#define READ_BYTES     32768u
#define POLICY         "default-src 'none'; style-src 'self'; form-action " \
	"'self'; base-uri 'none'; frame-ancestors 'none'"
#define REALM          "Basic realm=\"tributary-web\", charset=\"UTF-8\""

/* A connection, from the time when it was taken in; its opaque user data. */
struct client {
	TAILQ_ENTRY(client) link; /* while idle */
	struct lws *wsi;
	bool idle; /* no whole request is there */
};

/* One request at a time of a connection; libwebsockets has the memory. */
struct answer {
	LIST_ENTRY(answer) link; /* while it waits for a snapshot */
	bool waits;
	struct lws *wsi;
	bool head_only;
	const struct web_route *route;
	struct web_asked asked;
	uint64_t since_ms;
	unsigned status;
	const char *type;
	char *body; /* owned; NULL: none */
	struct web_job *job; /* owned; NULL: none */
	bool has_file; /* the body is in a file */
	int file;
	size_t len, sent;
	bool delivered; /* --open: the socket has the whole file */
	struct web_socket *socket; /* NULL: it is no WebSocket */
};

/* Connections between the loop, which accepts, and the thread. */
#define NEW_MAX 64u
/* Connections that make room for others, and are closed a moment later. */
#define LEAVING_MAX 64u

struct web_server {
	struct loop *loop;
	const struct web_options *options;
	struct web_source *source;
	struct web_secrets *secrets;
	struct web_traced *traced; /* NULL: without --traced */
	struct web_archive *archive; /* NULL: without --archive */
	struct listener *listener;
	struct lws_context *context;
	struct lws_vhost *host; /* the context's */
	struct web_hosts hosts;
	char url[WEB_HOST_MAX + 32];
	pthread_t thread;
	bool running;
	atomic_bool ends;
	atomic_uint look; /* enum web_look, for the thread to do */
	pthread_mutex_t lock; /* of new_fds and n_new */
	int new_fds[NEW_MAX];
	size_t n_new;
	struct loop_post accept_more;
	struct loop_post fetched; /* --open: it is done */
	/* The thread's: */
	LIST_HEAD(, answer) waiting;
	TAILQ_HEAD(, client) idle; /* the longest first */
	uint64_t connections; /* until their sockets are closed for good */
	struct metrics_answers answers[STATUSES];
	/*
	 * Files change one after the other: broken ones are logged only when
	 * they are still broken at the next look.
	 */
	bool again;
};

/* ---- bodies ---- */

static void
count(struct web_server *s, unsigned status)
{
	size_t i = 0;

	while (i < STATUSES - 1 && s->answers[i].status != 0 &&
	    s->answers[i].status != status)
		i++;
	s->answers[i].status = status;
	s->answers[i].n++;
}

/* -1: no memory. */
static int
make_body(struct web_server *s, struct answer *a,
    const struct web_snapshot *shot)
{
	FILE *out = open_memstream(&a->body, &a->len);

	if (out == NULL)
		return -1;
	a->asked.collector = s->options->collector.text;
	a->asked.has_archive = s->archive != NULL;
	a->asked.answers = s->answers;
	a->asked.n_answers = STATUSES;
	a->asked.connections = s->connections;
	a->status = a->route->print(&a->asked, shot, out);
	a->type = web_routes_type(a->route, &a->asked, a->status);
	if (fclose(out) == 0)
		return 0;
	free(a->body);
	a->body = NULL;
	return -1;
}

/* ---- answers ---- */

static void
stop_waiting(struct answer *a)
{
	if (a->waits)
		LIST_REMOVE(a, link);
	a->waits = false;
}

static void
forget(struct answer *a)
{
	stop_waiting(a);
	web_job_drop(a->job);
	a->job = NULL;
	free(a->body);
	a->body = NULL;
	a->has_file = a->delivered = false;
	a->len = a->sent = 0;
}

struct header {
	const char *name; /* with its colon */
	const char *value;
};

static int
put_headers(struct lws *wsi, const struct header *h, size_t n,
    unsigned char **at, unsigned char *end)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (h[i].value != NULL && lws_add_http_header_by_name(wsi,
		    (const unsigned char *)h[i].name,
		    (const unsigned char *)h[i].value,
		    (int)strlen(h[i].value), at, end) != 0)
			return -1;
	return 0;
}

/* -1: the connection is to be closed. */
static int
send_head(struct web_server *s, struct answer *a)
{
	const char *ui = s->options->open ? s->options->ui : NULL;
	bool scripts = a->route != NULL && a->route->scripts;
	char kept[VALUE_MAX];
	const struct header headers[] = {
		{ "content-type:", a->type },
		{ "cache-control:", "no-store" },
		{ "x-content-type-options:", "nosniff" },
		{ "x-frame-options:", "DENY" },
		{ "referrer-policy:", "no-referrer" },
		{ "cross-origin-resource-policy:", ui != NULL ? "cross-origin" :
		    "same-origin" },
		{ "access-control-allow-origin:", ui },
		{ "access-control-allow-private-network:", ui != NULL ?
		    "true" : NULL },
		/* A peer that has read all of a file then closes it. */
		{ "connection:", ui != NULL ? "close" : NULL },
		{ "content-security-policy:", scripts ? POLICY "; script-src "
		    "'self'; connect-src 'self'" : POLICY },
		{ "content-disposition:", a->has_file && a->job != NULL ?
		    kept : NULL },
		{ "retry-after:", a->status == HTTP_STATUS_SERVICE_UNAVAILABLE ?
		    "5" : NULL },
		{ "allow:", a->status == HTTP_STATUS_METHOD_NOT_ALLOWED ?
		    "GET, HEAD" : NULL },
		{ "www-authenticate:", a->status == HTTP_STATUS_UNAUTHORIZED ?
		    REALM : NULL },
	};
	unsigned char buffer[LWS_PRE + ANSWER_HEAD], *start = buffer + LWS_PRE;
	unsigned char *at = start, *end = buffer + sizeof(buffer);

	snprintf(kept, sizeof(kept), "attachment; filename=\"%s\"",
	    a->job != NULL ? a->job->name : "");
	if (lws_add_http_header_status(a->wsi, a->status, &at, end) != 0 ||
	    put_headers(a->wsi, headers, sizeof(headers) / sizeof(headers[0]),
	    &at, end) != 0 ||
	    lws_add_http_header_content_length(a->wsi, a->len, &at, end) != 0 ||
	    lws_finalize_write_http_header(a->wsi, start, &at, end) != 0)
		return -1;
	count(s, a->status);
	return 0;
}

static void
set_idle(struct web_server *s, struct client *c, bool idle)
{
	if (c == NULL || c->idle == idle)
		return;
	c->idle = idle;
	if (idle)
		TAILQ_INSERT_TAIL(&s->idle, c, link);
	else
		TAILQ_REMOVE(&s->idle, c, link);
}

/* The library frees the answer in here. */
static int
finish(struct web_server *s, struct answer *a)
{
	forget(a);
	set_idle(s, lws_get_opaque_user_data(a->wsi), true);
	if (s->options->open)
		return -1;
	return lws_http_transaction_completed(a->wsi) != 0 ? -1 : 0;
}

/* The time-out begins anew. */
static void
wait_for_room(struct answer *a)
{
	lws_set_timeout(a->wsi, PENDING_TIMEOUT_HTTP_CONTENT, a->has_file ?
	    FILE_STEP_SECONDS : STEP_SECONDS);
	lws_callback_on_writable(a->wsi);
}

static int
begin(struct web_server *s, struct answer *a)
{
	if (send_head(s, a) != 0)
		return -1;
	if (a->head_only || a->len == 0)
		return finish(s, a);
	wait_for_room(a);
	return 0;
}

/* Hands the next bytes to the socket.  -1: it is closed. */
static int
send_some(struct answer *a)
{
	unsigned char buffer[LWS_PRE + STEP_BYTES];
	size_t n = a->len - a->sent;
	ssize_t got;
	bool last;

	if (n > STEP_BYTES)
		n = STEP_BYTES;
	if (a->has_file) {
		got = pread(a->file, buffer + LWS_PRE, n, (off_t)a->sent);
		/* Its length was promised, so that no less can be said. */
		if (got <= 0)
			return -1;
		n = (size_t)got;
	} else {
		memcpy(buffer + LWS_PRE, a->body + a->sent, n);
	}
	last = n == a->len - a->sent;
	if (lws_write(a->wsi, buffer + LWS_PRE, n, last ? LWS_WRITE_HTTP_FINAL :
	    LWS_WRITE_HTTP) != (int)n)
		return -1;
	a->sent += n;
	return 0;
}

/* Sends more of the answer. */
static int
go_on(struct web_server *s, struct answer *a)
{
	if (a->delivered)
		return 0;
	if (a->sent < a->len) {
		if (send_some(a) != 0)
			return -1;
	} else {
		/* --open: the library has nothing left of it, either. */
		a->delivered = true;
		lws_set_timer_usecs(a->wsi, LOOK_USECS);
		return 0;
	}
	if (a->sent == a->len && !s->options->open)
		return finish(s, a);
	wait_for_room(a);
	return 0;
}

/* The connection is closed, as nothing of such a request is believed. */
static int
refuse(struct web_server *s, struct answer *a, unsigned status,
    const char *why)
{
	a->route = NULL;
	a->status = status;
	a->type = "text/plain; charset=utf-8";
	/* Idle from now on: others may have its place. */
	set_idle(s, lws_get_opaque_user_data(a->wsi), true);
	if (asprintf(&a->body, "%s\n", why) < 0) {
		a->body = NULL;
		return -1;
	}
	a->len = strlen(a->body);
	/* At once, as the rest of the request may still be on its way. */
	if (send_head(s, a) == 0 && !a->head_only)
		(void)send_some(a);
	forget(a);
	return -1;
}

/* Waits for what another thread makes, which wakes this one then. */
static int
wait_for(struct web_server *s, struct answer *a, int seconds)
{
	/* Time goes on for an answer that is woken for others. */
	if (a->waits)
		return 0;
	LIST_INSERT_HEAD(&s->waiting, a, link);
	a->waits = true;
	lws_set_timeout(a->wsi, PENDING_TIMEOUT_HTTP_CONTENT, seconds);
	if (a->job != NULL)
		lws_set_timer_usecs(a->wsi, GONE_USECS);
	return 0;
}

static int
answer_job(struct web_server *s, struct answer *a)
{
	struct web_job *j = a->job;

	if (!web_job_is_done(j))
		return wait_for(s, a, JOB_SECONDS);
	stop_waiting(a);
	a->status = j->status;
	a->type = j->kind == WEB_JOB_PAGE || j->fd >= 0 ? a->route->type :
	    "text/plain; charset=utf-8";
	a->has_file = j->fd >= 0;
	a->file = j->fd;
	a->len = j->len;
	a->body = j->body;
	j->body = NULL;
	return begin(s, a);
}

/* Answers a request, as soon as there is a snapshot for it. */
static int
answer(struct web_server *s, struct answer *a)
{
	struct web_snapshot *shot = NULL;
	int rc;

	if (a->job != NULL)
		return answer_job(s, a);
	if (a->route->asks) {
		shot = web_source_get(s->source, a->route->wish, a->since_ms);
		if (shot == NULL)
			return wait_for(s, a, WAIT_SECONDS);
	}
	stop_waiting(a);
	rc = make_body(s, a, shot);
	web_snapshot_unref(shot);
	return rc == 0 ? begin(s, a) : -1;
}

/*
 * The library does not read while an answer is under way, and so does not see
 * that its peer has left.  False: the connection is broken.
 */
static bool
tcp_state(struct answer *a, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);

	return getsockopt(lws_get_socket_fd(a->wsi), IPPROTO_TCP, TCP_INFO,
	    info, &len) == 0 && info->tcpi_state != TCP_CLOSE;
}

/* Ends a job whose peer has left, as other jobs wait behind it. */
static int
look_whether_gone(struct answer *a)
{
	struct tcp_info info;

	if (a == NULL || !a->waits)
		return 0;
	if (!tcp_state(a, &info) || info.tcpi_state == TCP_CLOSE_WAIT)
		return -1;
	lws_set_timer_usecs(a->wsi, GONE_USECS);
	return 0;
}

/* ---- the one file of --open ---- */

static void
fetched_cb(void *arg)
{
	struct web_server *s = arg;

	log_info("%s was fetched", s->options->file.name);
	loop_stop(s->loop);
}

/*
 * Ends the program once the peer has closed the connection behind all of the
 * file: one that left before that had something unread, and so reset it.
 */
static int
look_whether_fetched(struct web_server *s, struct answer *a)
{
	struct tcp_info info;

	if (!a->delivered || !tcp_state(a, &info))
		return -1;
	if (info.tcpi_state == TCP_CLOSE_WAIT && info.tcpi_unacked == 0)
		loop_post(s->loop, &s->fetched, fetched_cb, s);
	else
		lws_set_timer_usecs(a->wsi, LOOK_USECS);
	return 0;
}

/* A request where there is one file, for pages of one other origin. */
static int
take_open(struct web_server *s, struct answer *a, const char *path,
    const char *origin)
{
	const struct web_options *o = s->options;
	bool get = lws_hdr_total_length(a->wsi, WSI_TOKEN_GET_URI) > 0;
	bool asks = lws_hdr_total_length(a->wsi, WSI_TOKEN_OPTIONS_URI) > 0;

	if (path[0] != '/' || strcmp(path + 1, o->file.name) != 0)
		return refuse(s, a, HTTP_STATUS_NOT_FOUND,
		    "There is one file, and it is not this one.");
	if (origin == NULL || strcasecmp(origin, o->ui) != 0)
		return refuse(s, a, HTTP_STATUS_FORBIDDEN, "The file is for "
		    "pages of Perfetto's UI alone: --ui names its origin.");
	if (!get && !asks && !a->head_only)
		return refuse(s, a, HTTP_STATUS_METHOD_NOT_ALLOWED,
		    "There is only GET.");
	a->type = "application/octet-stream";
	a->status = HTTP_STATUS_OK;
	/* The browser asks first whether it may. */
	if (asks)
		return begin(s, a);
	a->has_file = true;
	a->file = o->file.fd;
	a->len = o->file.bytes;
	return begin(s, a);
}

/* ---- connections ---- */

/*
 * Ends the connection that has said nothing for longest where all places are
 * taken, so that thousands of such do no harm.  False: all are being answered.
 */
static bool
make_room(struct web_server *s)
{
	struct client *c = TAILQ_FIRST(&s->idle);

	if (s->connections < WEB_CONNECTIONS_MAX)
		return true;
	if (c == NULL)
		return false;
	set_idle(s, c, false);
	/*
	 * Not lws_set_timeout(): the library would then keep the socket for as
	 * long as the other end does not close its own.
	 */
	(void)shutdown(lws_get_socket_fd(c->wsi), SHUT_RDWR);
	return true;
}

static void
accept_more_cb(void *arg)
{
	struct web_server *s = arg;

	listener_wake(s->listener);
}

/* On the loop. */
static void
accepted(struct listener *l, int fd, void *arg)
{
	struct web_server *s = arg;

	pthread_mutex_lock(&s->lock);
	if (s->n_new < NEW_MAX)
		s->new_fds[s->n_new++] = fd;
	else
		close(fd);
	if (s->n_new == NEW_MAX)
		listener_rest(l);
	pthread_mutex_unlock(&s->lock);
	lws_cancel_service(s->context);
}

/* -1: none.  The listener goes on where there was no room. */
static int
next_new(struct web_server *s)
{
	int fd = -1;

	pthread_mutex_lock(&s->lock);
	if (s->n_new == NEW_MAX)
		loop_post(s->loop, &s->accept_more, accept_more_cb, s);
	if (s->n_new > 0) {
		fd = s->new_fds[0];
		s->n_new--;
		memmove(s->new_fds, s->new_fds + 1,
		    s->n_new * sizeof(s->new_fds[0]));
	}
	pthread_mutex_unlock(&s->lock);
	return fd;
}

/* The library closes what it cannot take. */
static void
take_in(struct web_server *s, int fd)
{
	struct client *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		close(fd);
		return;
	}
	c->wsi = lws_adopt_socket_vhost(s->host, fd);
	if (c->wsi == NULL) {
		free(c);
		return;
	}
	lws_set_opaque_user_data(c->wsi, c);
	s->connections++;
	set_idle(s, c, true);
}

static void
take_new(struct web_server *s)
{
	int fd;

	while (s->connections < WEB_CONNECTIONS_MAX + LEAVING_MAX) {
		if ((fd = next_new(s)) < 0)
			return;
		if (make_room(s))
			take_in(s, fd);
		else
			close(fd);
	}
	/* Once some have left. */
	lws_cancel_service(s->context);
}

static void
leave(struct web_server *s, struct client *c)
{
	if (c == NULL)
		return;
	set_idle(s, c, false);
	s->connections--;
	free(c);
}

/* ---- requests ---- */

/* The value of a header; NULL: there is none.  too_long: it is longer. */
static const char *
header(struct lws *wsi, enum lws_token_indexes which, char out[VALUE_MAX],
    bool *too_long)
{
	if (lws_hdr_total_length(wsi, which) == 0)
		return NULL;
	if (lws_hdr_copy(wsi, out, VALUE_MAX, which) < 0) {
		*too_long = true;
		return NULL;
	}
	return out;
}

/* A header that the library has no number for; name has its colon. */
static const char *
other_header(struct lws *wsi, const char *name, char out[VALUE_MAX])
{
	int len = (int)strlen(name);

	if (lws_hdr_custom_length(wsi, name, len) < 0)
		return NULL;
	return lws_hdr_custom_copy(wsi, out, VALUE_MAX, name, len) < 0 ? "" :
	    out;
}

/*
 * Whether another site has the browser ask for what takes long.  One may have a
 * link to the page.
 */
static bool
is_foreign_job(struct lws *wsi, enum web_job_kind job)
{
	char site[VALUE_MAX], mode[VALUE_MAX];
	const char *how;

	if (job == WEB_JOB_NONE || web_is_own_fetch(other_header(wsi,
	    "sec-fetch-site:", site)))
		return false;
	how = other_header(wsi, "sec-fetch-mode:", mode);
	return job != WEB_JOB_PAGE || how == NULL ||
	    strcmp(how, "navigate") != 0;
}

static void
read_query(struct lws *wsi, struct web_query *q)
{
	char part[VALUE_MAX];
	int i;

	web_query_init(q);
	for (i = 0; i < QUERY_PARTS && lws_hdr_copy_fragment(wsi, part,
	    sizeof(part), WSI_TOKEN_HTTP_URI_ARGS, i) >= 0; i++)
		web_query_take(q, part);
}

static bool
has_body(struct lws *wsi)
{
	return lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH) > 0 ||
	    lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_TRANSFER_ENCODING) > 0;
}

/* The headers that say who asks; NULL: there is none. */
struct who {
	char space[3][VALUE_MAX];
	const char *host, *origin, *authorization;
	bool too_long;
};

static void
read_who(struct lws *wsi, struct who *w)
{
	w->too_long = false;
	w->host = header(wsi, WSI_TOKEN_HOST, w->space[0], &w->too_long);
	w->origin = header(wsi, WSI_TOKEN_ORIGIN, w->space[1], &w->too_long);
	w->authorization = header(wsi, WSI_TOKEN_HTTP_AUTHORIZATION,
	    w->space[2], &w->too_long);
}

/* Whether the request is for this server, told truly.  Else it is refused. */
static bool
is_for_us(struct web_server *s, struct answer *a, const struct who *w)
{
	if (w->too_long)
		(void)refuse(s, a, STATUS_HEADER_TOO_LARGE,
		    "A header is too long.");
	else if (!web_hosts_has(&s->hosts, w->host))
		(void)refuse(s, a, HTTP_STATUS_FORBIDDEN, "This server does "
		    "not answer for that host: its names are given by --name.");
	else
		return true;
	return false;
}

static int
take_request(struct web_server *s, struct lws *wsi, struct answer *a,
    const char *path)
{
	char accept[VALUE_MAX];
	const char *form, *token;
	struct who who;
	bool get;

	forget(a);
	a->wsi = wsi;
	a->head_only = lws_hdr_total_length(wsi, WSI_TOKEN_HEAD_URI) > 0;
	get = lws_hdr_total_length(wsi, WSI_TOKEN_GET_URI) > 0;
	read_who(wsi, &who);
	form = header(wsi, WSI_TOKEN_HTTP_ACCEPT, accept, &who.too_long);
	if (!is_for_us(s, a, &who))
		return -1;
	if (s->options->open)
		return has_body(wsi) ? -1 : take_open(s, a, path, who.origin);
	if (!web_hosts_is_origin(&s->hosts, who.origin))
		return refuse(s, a, HTTP_STATUS_FORBIDDEN, "Pages of other "
		    "sites may not ask this server.");
	if (!get && !a->head_only)
		return refuse(s, a, HTTP_STATUS_METHOD_NOT_ALLOWED,
		    "There is only GET and HEAD.");
	if (has_body(wsi))
		return refuse(s, a, HTTP_STATUS_BAD_REQUEST,
		    "A request has no body here.");
	a->route = web_routes_find(path);
	token = web_secrets_token(s->secrets);
	if (token[0] != '\0' && (a->route == NULL || !a->route->is_open) &&
	    !web_authorized(token, who.authorization))
		return refuse(s, a, HTTP_STATUS_UNAUTHORIZED,
		    "This takes a token.");
	if (a->route == NULL)
		return refuse(s, a, HTTP_STATUS_NOT_FOUND, "There is /, "
		    "/archive, /metrics, /healthz and /readyz.");
	if (a->route->is_archive && s->archive == NULL)
		return refuse(s, a, HTTP_STATUS_NOT_FOUND, "No archive is "
		    "served here: tributary-web --archive DIR, or --catalog "
		    "URL, shows one.");
	if (is_foreign_job(wsi, a->route->job))
		return refuse(s, a, HTTP_STATUS_FORBIDDEN, "Pages of other "
		    "sites may not ask for this.");
	a->asked.form = web_metrics_form(form);
	read_query(wsi, &a->asked.query);
	if (a->asked.query.of_machine && a->route->of_machine != NULL)
		a->route = a->route->of_machine;
	a->since_ms = loop_now_ms() - WEB_FRESH_MS;
	if (a->route->job == WEB_JOB_NONE)
		return answer(s, a);
	a->job = web_archive_ask(s->archive, a->route->job, &a->asked.query);
	if (a->job == NULL)
		return refuse(s, a, HTTP_STATUS_SERVICE_UNAVAILABLE, "Others "
		    "are being served from the archive: try again in a "
		    "moment.");
	return answer(s, a);
}

/* ---- WebSockets ---- */

/* Perfetto's UI, and what speaks as it does: they change what is recorded. */
static int
take_upgrade(struct web_server *s, struct lws *wsi, const char *to)
{
	/* The library has no memory for one yet. */
	struct answer refusal = { .wsi = wsi }, *a = &refusal;
	const char *p, *token = web_secrets_token(s->secrets);
	char path[VALUE_MAX];
	struct who who;

	read_who(wsi, &who);
	p = header(wsi, WSI_TOKEN_GET_URI, path, &who.too_long);
	if (!is_for_us(s, a, &who))
		return -1;
	if (s->traced == NULL || p == NULL || strcmp(p, "/traced") != 0 ||
	    strcasecmp(to, "websocket") != 0)
		return refuse(s, a, HTTP_STATUS_NOT_FOUND, "WebSockets are at "
		    "/traced alone, where tributary-web runs with --traced.");
	if (!web_options_lets_record(s->options, who.origin))
		return refuse(s, a, HTTP_STATUS_FORBIDDEN, "Pages of this "
		    "origin may not record: --origin lets others do so.");
	if (token[0] != '\0' && !web_authorized(token, who.authorization))
		return refuse(s, a, HTTP_STATUS_UNAUTHORIZED,
		    "This takes a token.");
	set_idle(s, lws_get_opaque_user_data(wsi), false);
	return 0;
}

static int
begin_socket(struct web_server *s, struct lws *wsi, struct answer *a)
{
	int fd = web_traced_open(s->traced);

	if (fd < 0) {
		log_warn("a recorder is refused: there are %u connections to "
		    "the collector, or no descriptors", WEB_TRACED_MAX);
		return -1;
	}
	a->socket = web_socket_new(wsi, s->host, fd);
	return a->socket == NULL ? -1 : 0;
}

static void
end_socket(struct answer *a)
{
	if (a != NULL && a->socket != NULL)
		web_socket_closed(a->socket);
	if (a != NULL)
		a->socket = NULL;
}

static int
write_more(struct web_server *s, struct answer *a)
{
	if (a->waits)
		return answer(s, a);
	return a->body != NULL || a->has_file ? go_on(s, a) : 0;
}

static void
wake_waiting(struct web_server *s)
{
	struct answer *a;

	LIST_FOREACH(a, &s->waiting, link)
		lws_callback_on_writable(a->wsi);
}

/* ---- secrets ---- */

static void
reload(struct web_server *s, bool was_told)
{
	char err[WEB_ERROR_SIZE];
	int rc = web_secrets_reload(s->secrets, err, sizeof(err));

	if (rc == 0)
		log_info("certificates and token were read again");
	else if (was_told || s->again)
		log_error("certificates and token are kept as they were: %s",
		    err);
	s->again = rc != 0 && !was_told && !s->again;
}

static void
look_at_secrets(struct web_server *s)
{
	switch ((enum web_look)atomic_exchange(&s->look, WEB_LOOK_NOT)) {
	case WEB_LOOK_NOT:
		break;
	case WEB_LOOK_WHETHER_CHANGED:
		if (s->again || web_secrets_are_stale(s->secrets))
			reload(s, false);
		break;
	case WEB_LOOK_AND_TELL:
		reload(s, true);
		break;
	}
}

/* ---- what libwebsockets calls ---- */

static int
callback(struct lws *wsi, enum lws_callback_reasons reason, void *user,
    void *in, size_t len)
{
	struct web_server *s = lws_context_user(lws_get_context(wsi));
	struct answer *a = user;

	switch ((int)reason) {
	case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
		take_new(s);
		look_at_secrets(s);
		wake_waiting(s);
		return 0;
	case LWS_CALLBACK_OPENSSL_LOAD_EXTRA_SERVER_VERIFY_CERTS:
		web_secrets_attach(s->secrets, user);
		return 0;
	case LWS_CALLBACK_WSI_DESTROY:
		leave(s, lws_get_opaque_user_data(wsi));
		return 0;
	case LWS_CALLBACK_HTTP:
		set_idle(s, lws_get_opaque_user_data(wsi), false);
		return take_request(s, wsi, a, in);
	case LWS_CALLBACK_HTTP_WRITEABLE:
		return write_more(s, a);
	case LWS_CALLBACK_HTTP_DROP_PROTOCOL:
	case LWS_CALLBACK_CLOSED_HTTP:
		if (a != NULL)
			forget(a);
		return 0;
	case LWS_CALLBACK_TIMER:
		return s->options->open ? look_whether_fetched(s, a) :
		    look_whether_gone(a);
	case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
		return take_upgrade(s, wsi, in);
	case LWS_CALLBACK_ESTABLISHED:
		return begin_socket(s, wsi, a);
	case LWS_CALLBACK_RECEIVE:
		return a->socket == NULL ? -1 :
		    web_socket_received(a->socket, in, len);
	case LWS_CALLBACK_SERVER_WRITEABLE:
		return a->socket == NULL ? 0 : web_socket_writable(a->socket);
	case LWS_CALLBACK_CLOSED:
	case LWS_CALLBACK_WS_SERVER_DROP_PROTOCOL:
		end_socket(a);
		return 0;
	/* There are no bodies. */
	case LWS_CALLBACK_HTTP_BODY:
	case LWS_CALLBACK_HTTP_BODY_COMPLETION:
		return -1;
	}
	return 0;
}

static int
near_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user,
    void *in, size_t len)
{
	return web_socket_near_callback(wsi, (int)reason, user, in, len);
}

static const struct lws_protocols protocols[] = {
	{ "http-only", callback, sizeof(struct answer), 0, 0, NULL, 0 },
	{ WEB_SOCKET_NEAR, near_callback, WEB_SOCKET_NEAR_USER, 0, 0, NULL, 0 },
	{ NULL, NULL, 0, 0, 0, NULL, 0 },
};

/* ---- the server ---- */

/* libwebsockets' own sentences: at the start the operator's, then peers'. */
static void
log_start(int level, const char *line)
{
	log_warn("libwebsockets: %.*s", (int)strcspn(line, "\n"), line);
}

static void
log_serving(int level, const char *line)
{
	log_debug("libwebsockets: %.*s", (int)strcspn(line, "\n"), line);
}

static void
set_up(struct lws_context_creation_info *info, struct web_server *s)
{
	info->port = CONTEXT_PORT_NO_LISTEN_SERVER;
	info->protocols = protocols;
	info->user = s;
	info->server_string = "tributary-web";
	info->max_http_header_data = HEAD_BYTES;
	info->pt_serv_buf_size = READ_BYTES;
	info->max_http_header_pool = WEB_CONNECTIONS_MAX;
	info->fd_limit_per_thread = WEB_CONNECTIONS_MAX + LEAVING_MAX +
	    WEB_TRACED_MAX + 24;
	info->timeout_secs = STEP_SECONDS;
	info->timeout_secs_ah_idle = HEAD_SECONDS;
	info->keepalive_timeout = IDLE_SECONDS;
	info->options = LWS_SERVER_OPTION_SKIP_SERVER_CANONICAL_NAME |
	    LWS_SERVER_OPTION_DISABLE_OS_CA_CERTS;
	info->gid = info->uid = -1;
	if (s->options->https_cert == NULL)
		return;
	/* web_secrets has the certificate. */
	info->options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT |
	    LWS_SERVER_OPTION_CREATE_VHOST_SSL_CTX;
	info->ssl_options_set = SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1 |
	    SSL_OP_NO_RENEGOTIATION;
}

/* "127.0.0.1" or "[::1]" */
static void
host_text(const struct sockaddr_storage *sa, char out[WEB_HOST_MAX])
{
	char text[INET6_ADDRSTRLEN] = "";

	if (sa->ss_family == AF_INET6)
		(void)inet_ntop(AF_INET6,
		    &((const struct sockaddr_in6 *)sa)->sin6_addr, text,
		    sizeof(text));
	else
		(void)inet_ntop(AF_INET,
		    &((const struct sockaddr_in *)sa)->sin_addr, text,
		    sizeof(text));
	snprintf(out, WEB_HOST_MAX, sa->ss_family == AF_INET6 ? "[%s]" : "%s",
	    text);
}

static int
name_hosts(struct web_server *s, unsigned port)
{
	static const char *const local[] = { "127.0.0.1", "localhost", "[::1]" };
	const struct web_options *o = s->options;
	char own[WEB_HOST_MAX];
	size_t i;

	s->hosts.tls = o->https_cert != NULL;
	for (i = 0; i < sizeof(local) / sizeof(local[0]); i++)
		if (web_hosts_add(&s->hosts, local[i], port) != 0)
			return -1;
	for (i = 0; i < o->n_names; i++)
		if (web_hosts_add(&s->hosts, o->names[i], port) != 0)
			return -1;
	for (i = o->n_resolved; i-- > 0; ) {
		host_text(&o->resolved[i], own);
		if (web_hosts_add(&s->hosts, own, port) != 0)
			return -1;
	}
	snprintf(s->url, sizeof(s->url), "%s://%s:%u/", s->hosts.tls ? "https" :
	    "http", own, port);
	return 0;
}

static int
start_listening(struct web_server *s, char *err, size_t err_size)
{
	const struct listener_setup setup = {
		.addr = &s->options->address,
		/* The options were refused where that is unsafe. */
		.allow_remote = true,
		.fn = accepted,
		.arg = s,
	};

	s->listener = listener_new(s->loop, &setup, err, err_size);
	if (s->listener == NULL)
		return -1;
	if (name_hosts(s, (unsigned)listener_port(s->listener)) != 0)
		return FAILURE(err, err_size, "a --name is too long");
	return 0;
}

static int
start_library(struct web_server *s, char *err, size_t err_size)
{
	struct lws_context_creation_info info;

	lws_set_log_level(LLL_ERR, log_start);
	memset(&info, 0, sizeof(info));
	set_up(&info, s);
	s->context = lws_create_context(&info);
	if (s->context == NULL)
		return FAILURE(err, err_size, "libwebsockets does not start");
	s->host = lws_get_vhost_by_name(s->context, "default");
	lws_set_log_level(LLL_ERR | LLL_WARN, log_serving);
	return 0;
}

static void
job_done(void *arg)
{
	web_server_wake(arg);
}

struct web_server *
web_server_new(struct loop *l, const struct web_options *o,
    struct web_source *source, char *err, size_t err_size)
{
	const struct web_archive_setup archive = { o->archive, o->catalog,
		o->ui };
	struct web_server *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		snprintf(err, err_size, "no memory");
		return NULL;
	}
	s->loop = l;
	s->options = o;
	s->source = source;
	LIST_INIT(&s->waiting);
	TAILQ_INIT(&s->idle);
	pthread_mutex_init(&s->lock, NULL);
	if (o->traced)
		s->traced = web_traced_new(l, &o->collector, &o->line.how);
	if ((o->archive != NULL || o->catalog != NULL) &&
	    (s->archive = web_archive_new(&archive, job_done, s, err,
	    err_size)) == NULL) {
		web_server_free(s);
		return NULL;
	}
	if (o->traced && s->traced == NULL)
		snprintf(err, err_size, "no memory");
	else
		s->secrets = web_secrets_new(o, err, err_size);
	if (s->secrets != NULL && start_library(s, err, err_size) == 0 &&
	    start_listening(s, err, err_size) == 0)
		return s;
	web_server_free(s);
	return NULL;
}

const char *
web_server_url(const struct web_server *s)
{
	return s->url;
}

static void *
run(void *arg)
{
	struct web_server *s = arg;

	while (!atomic_load(&s->ends))
		if (lws_service(s->context, 0) < 0)
			break;
	return NULL;
}

int
web_server_start(struct web_server *s, char *err, size_t err_size)
{
	if ((s->archive != NULL && web_archive_start(s->archive) != 0) ||
	    pthread_create(&s->thread, NULL, run, s) != 0)
		return FAILURE(err, err_size, "the system has no room for a "
		    "thread");
	s->running = true;
	return 0;
}

void
web_server_wake(struct web_server *s)
{
	lws_cancel_service(s->context);
}

void
web_server_look(struct web_server *s, enum web_look how)
{
	unsigned before = atomic_load(&s->look);

	/* An order is not undone by a look. */
	while (before < (unsigned)how &&
	    !atomic_compare_exchange_weak(&s->look, &before, (unsigned)how))
		;
	lws_cancel_service(s->context);
}

void
web_server_free(struct web_server *s)
{
	if (s == NULL)
		return;
	if (s->running) {
		atomic_store(&s->ends, true);
		lws_cancel_service(s->context);
		pthread_join(s->thread, NULL);
	}
	listener_free(s->listener);
	loop_cancel(s->loop, s);
	/* Jobs wake the library, and are dropped by connections that end. */
	if (s->archive != NULL)
		web_archive_stop(s->archive);
	if (s->context != NULL)
		lws_context_destroy(s->context);
	while (s->n_new > 0)
		close(s->new_fds[--s->n_new]);
	web_archive_free(s->archive);
	web_traced_free(s->traced);
	web_secrets_free(s->secrets);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
