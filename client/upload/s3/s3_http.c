#include "client/upload/s3/s3_http.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "client/upload/s3/credentials.h"
#include "client/upload/s3/s3_place.h"
#include "transport/base/log.h"

/* Time in which a store takes a connection. */
#define CONNECT_MS 30000L
/* A tick, in microseconds. */
#define TICK_US 1000000

struct s3_http {
	struct s3_http_setup setup;
	CURL *curl;
	char error[CURL_ERROR_SIZE];
	/* The request under way: */
	const struct s3_request *request;
	struct s3_reply *reply;
	uint64_t body_at;
	struct s3_digest md5;
	size_t body_room;
	bool sink_failed;
	bool read_failed;
	curl_off_t next_tick;
};

struct s3_http *
s3_http_new(const struct s3_http_setup *setup)
{
	struct s3_http *h = calloc(1, sizeof(*h));

	if (h == NULL || (h->curl = curl_easy_init()) == NULL) {
		s3_http_free(h);
		return NULL;
	}
	h->setup = *setup;
	return h;
}

void
s3_http_free(struct s3_http *h)
{
	if (h == NULL)
		return;
	curl_easy_cleanup(h->curl);
	free(h);
}

void
s3_reply_done(struct s3_reply *reply)
{
	free(reply->body);
	reply->body = NULL;
}

/* ---- libcurl's calls ---- */

static size_t
read_cb(char *to, size_t size, size_t n, void *arg)
{
	struct s3_http *h = arg;
	const struct s3_body *body = h->request->body;
	uint64_t left = body->size - h->body_at;
	size_t len = size * n < left ? size * n : (size_t)left;
	ssize_t got = (ssize_t)len;

	if (len == 0)
		return 0;
	if (body->bytes != NULL)
		memcpy(to, body->bytes + h->body_at, len);
	else
		got = pread(body->fd, to, len,
		    body->offset + (off_t)h->body_at);
	/* A file that became shorter is none of a request's. */
	if (got <= 0) {
		h->read_failed = true;
		return CURL_READFUNC_ABORT;
	}
	s3_digest_add(&h->md5, to, (size_t)got);
	h->body_at += (uint64_t)got;
	return (size_t)got;
}

/* A connection that ended before the store looked at the body. */
static int
seek_cb(void *arg, curl_off_t offset, int origin)
{
	struct s3_http *h = arg;

	if (origin != SEEK_SET || offset != 0)
		return CURL_SEEKFUNC_CANTSEEK;
	h->body_at = 0;
	s3_digest_done(&h->md5);
	s3_digest_init(&h->md5, S3_MD5);
	return CURL_SEEKFUNC_OK;
}

static bool
keep_bytes(struct s3_http *h, const char *bytes, size_t len)
{
	struct s3_reply *r = h->reply;
	size_t room = h->body_room;
	char *larger;

	if (len > S3_KEPT_MAX - r->body_len)
		return false;
	while (room < r->body_len + len + 1)
		room = room == 0 ? 4096 : room * 2;
	if (room != h->body_room) {
		if ((larger = realloc(r->body, room)) == NULL)
			return false;
		r->body = larger;
		h->body_room = room;
	}
	memcpy(r->body + r->body_len, bytes, len);
	r->body_len += len;
	r->body[r->body_len] = '\0';
	return true;
}

static size_t
write_cb(char *bytes, size_t size, size_t n, void *arg)
{
	struct s3_http *h = arg;
	size_t len = size * n;
	long status = 0;

	(void)curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
	if (h->request->sink == NULL || status != 200)
		return keep_bytes(h, bytes, len) ? len : 0;
	if (h->request->sink(h->request->sink_arg, bytes, len) == 0)
		return len;
	h->sink_failed = true;
	return 0;
}

/* The value of the header `name`, trimmed, in out; false: another header. */
static bool
header_is(const char *line, size_t len, const char *name, char *out,
    size_t out_size)
{
	size_t name_len = strlen(name);

	if (len <= name_len || line[name_len] != ':' ||
	    strncasecmp(line, name, name_len) != 0)
		return false;
	line += name_len + 1;
	len -= name_len + 1;
	while (len > 0 && (*line == ' ' || *line == '\t')) {
		line++;
		len--;
	}
	while (len > 0 && strchr(" \t\r\n", line[len - 1]) != NULL)
		len--;
	snprintf(out, out_size, "%.*s", (int)len, line);
	return true;
}

static size_t
header_cb(char *line, size_t size, size_t n, void *arg)
{
	struct s3_http *h = arg;
	struct s3_reply *r = h->reply;
	size_t len = size * n;
	char value[256];

	/* Headers of an answer before the last, "100 Continue", are void. */
	if (len > 5 && strncmp(line, "HTTP/", 5) == 0) {
		r->etag[0] = r->sha256[0] = '\0';
		r->size = 0;
		r->is_keyed = false;
	} else if (header_is(line, len, "etag", value, sizeof(value))) {
		s3_etag_copy(r->etag, value);
	} else if (header_is(line, len, S3_SHA256_HEADER, r->sha256,
		sizeof(r->sha256))) {
		return len;
	} else if (header_is(line, len, "content-length", value,
		sizeof(value))) {
		r->size = strtoull(value, NULL, 10);
	} else if (header_is(line, len, "x-amz-server-side-encryption", value,
		sizeof(value))) {
		r->is_keyed = strcmp(value, "AES256") != 0;
	}
	return len;
}

static int
progress_cb(void *arg, curl_off_t down_total, curl_off_t down,
    curl_off_t up_total, curl_off_t up)
{
	struct s3_http *h = arg;
	curl_off_t now = 0;

	if (h->setup.stop != NULL && *h->setup.stop)
		return 1;
	if (h->setup.tick == NULL)
		return 0;
	(void)curl_easy_getinfo(h->curl, CURLINFO_TOTAL_TIME_T, &now);
	if (now >= h->next_tick) {
		h->next_tick = now + TICK_US;
		h->setup.tick(h->setup.tick_arg, (uint64_t)(up + down),
		    (uint64_t)(up_total + down_total));
	}
	return 0;
}

/* ---- a request ---- */

static void
set_callbacks(struct s3_http *h)
{
	CURL *c = h->curl;

	curl_easy_setopt(c, CURLOPT_READFUNCTION, read_cb);
	curl_easy_setopt(c, CURLOPT_READDATA, h);
	curl_easy_setopt(c, CURLOPT_SEEKFUNCTION, seek_cb);
	curl_easy_setopt(c, CURLOPT_SEEKDATA, h);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, write_cb);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, h);
	curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, header_cb);
	curl_easy_setopt(c, CURLOPT_HEADERDATA, h);
	curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, progress_cb);
	curl_easy_setopt(c, CURLOPT_XFERINFODATA, h);
	curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, h->error);
}

static void
set_patience(struct s3_http *h)
{
	CURL *c = h->curl;
	curl_off_t rate = (curl_off_t)h->setup.max_bytes_per_s;

	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME,
	    (long)((h->setup.stall_ms + 999) / 1000));
	curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(c, CURLOPT_UPLOAD_BUFFERSIZE, 512L * 1024);
	curl_easy_setopt(c, CURLOPT_BUFFERSIZE, 256L * 1024);
	if (rate == 0)
		return;
	curl_easy_setopt(c, CURLOPT_MAX_SEND_SPEED_LARGE, rate);
	curl_easy_setopt(c, CURLOPT_MAX_RECV_SPEED_LARGE, rate);
}

static CURLcode
set_way(struct s3_http *h, const char *url)
{
	char provider[96];
	CURL *c = h->curl;

	snprintf(provider, sizeof(provider), "aws:amz:%s:s3",
	    h->setup.place->region);
	curl_easy_setopt(c, CURLOPT_URL, url);
	/* As it was signed: "." and ".." stay. */
	curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c, CURLOPT_USERAGENT,
	    "tributary-upload/" TRIBUTARY_VERSION);
	curl_easy_setopt(c, CURLOPT_USERNAME, h->setup.credentials->key);
	curl_easy_setopt(c, CURLOPT_PASSWORD, h->setup.credentials->secret);
	if (h->setup.ca_file != NULL)
		curl_easy_setopt(c, CURLOPT_CAINFO, h->setup.ca_file);
	return curl_easy_setopt(c, CURLOPT_AWS_SIGV4, provider);
}

static void
set_method(struct s3_http *h, const struct s3_request *request)
{
	CURL *c = h->curl;
	curl_off_t size = request->body == NULL ? 0 :
	    (curl_off_t)request->body->size;

	switch (request->method) {
	case S3_GET:
		break;
	case S3_HEAD:
		curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
		break;
	case S3_PUT:
		curl_easy_setopt(c, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(c, CURLOPT_INFILESIZE_LARGE, size);
		break;
	case S3_POST:
		curl_easy_setopt(c, CURLOPT_POST, 1L);
		curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, size);
		if (size == 0)
			curl_easy_setopt(c, CURLOPT_POSTFIELDS, "");
		break;
	case S3_DELETE:
		curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, "DELETE");
		break;
	}
}

/* -1: no memory; *list is the caller's in any case. */
static int
add_header(struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*list, line);

	if (longer == NULL)
		return -1;
	*list = longer;
	return 0;
}

/* The token is as secret as the key. */
static int
add_token(struct curl_slist **list, const char *token)
{
	char *line;
	int rc;

	if (token == NULL)
		return 0;
	if (asprintf(&line, "x-amz-security-token: %s", token) < 0)
		return -1;
	rc = add_header(list, line);
	explicit_bzero(line, strlen(line));
	free(line);
	return rc;
}

static int
set_headers(struct s3_http *h, const struct s3_request *request,
    struct curl_slist **list)
{
	char line[128];
	size_t i;

	snprintf(line, sizeof(line), "x-amz-content-sha256: %s",
	    request->sha256 != NULL ? request->sha256 : s3_digest_of_nothing);
	if (add_header(list, line) != 0 ||
	    add_token(list, h->setup.credentials->token) != 0)
		return -1;
	for (i = 0; i < S3_HEADERS_MAX && request->headers[i] != NULL; i++)
		if (add_header(list, request->headers[i]) != 0)
			return -1;
	curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, *list);
	return 0;
}

/* ---- the answer ---- */

/* No store gets to have our keys written into a log. */
static bool
tells_secrets(const struct credentials *c, const char *text)
{
	return strstr(text, c->key) != NULL || strstr(text, c->secret) != NULL ||
	    (c->token != NULL && strstr(text, c->token) != NULL);
}

static void
judge_answer(struct s3_http *h, struct s3_reply *r)
{
	struct s3_error e = { 0 };
	char code[100], message[300];

	if (r->body != NULL)
		(void)s3_error_read(&e, r->body, r->body_len);
	r->outcome = s3_outcome_of(r->status, e.code);
	if (r->outcome == S3_OK)
		return;
	if (tells_secrets(h->setup.credentials, e.message) ||
	    tells_secrets(h->setup.credentials, e.code))
		e = (struct s3_error){ 0 };
	log_escape(code, sizeof(code), e.code, strlen(e.code));
	log_escape(message, sizeof(message), e.message, strlen(e.message));
	snprintf(r->why, sizeof(r->why), "the store answered %ld%s%s%s%s",
	    r->status, *code != '\0' ? " " : "", code,
	    *message != '\0' ? ": " : "", message);
}

static void
judge_failure(struct s3_http *h, struct s3_reply *r, CURLcode rc)
{
	const char *why = h->error[0] != '\0' ? h->error :
	    curl_easy_strerror(rc);

	r->status = 0;
	r->outcome = S3_BUSY;
	if (h->read_failed) {
		r->outcome = S3_DAMAGED;
		why = "the file became shorter while it was sent";
	} else if (h->sink_failed || rc == CURLE_ABORTED_BY_CALLBACK) {
		r->outcome = S3_STOPPED;
		why = "stopped";
	} else if (rc == CURLE_WRITE_ERROR) {
		why = "its answer is too long";
	} else if (rc == CURLE_PEER_FAILED_VERIFICATION ||
	    rc == CURLE_SSL_CACERT_BADFILE) {
		r->outcome = S3_REFUSED;
	}
	snprintf(r->why, sizeof(r->why), "no answer from the store: %s", why);
}

static void
judge(struct s3_http *h, struct s3_reply *r, CURLcode rc)
{
	curl_off_t after = 0;

	if (rc != CURLE_OK) {
		judge_failure(h, r, rc);
		return;
	}
	(void)curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &r->status);
	(void)curl_easy_getinfo(h->curl, CURLINFO_RETRY_AFTER, &after);
	if (after > S3_RETRY_AFTER_MOST)
		after = S3_RETRY_AFTER_MOST;
	if (after > 0)
		r->retry_after_ms = (uint64_t)after * 1000;
	s3_digest_hex(&h->md5, r->sent_md5, sizeof(r->sent_md5));
	judge_answer(h, r);
}

static CURLcode
perform(struct s3_http *h, const char *url, struct curl_slist **headers)
{
	const struct s3_request *request = h->request;
	CURLcode rc;

	curl_easy_reset(h->curl);
	set_callbacks(h);
	set_patience(h);
	if ((rc = set_way(h, url)) != CURLE_OK)
		return rc;
	set_method(h, request);
	if (set_headers(h, request, headers) != 0)
		return CURLE_OUT_OF_MEMORY;
	/* Without MD5 tags are not compared. */
	if (request->body != NULL)
		s3_digest_init(&h->md5, S3_MD5);
	return curl_easy_perform(h->curl);
}

void
s3_http_ask(struct s3_http *h, const struct s3_request *request,
    struct s3_reply *reply)
{
	struct curl_slist *headers = NULL;
	CURLcode rc = CURLE_OUT_OF_MEMORY;
	char *url;

	*reply = (struct s3_reply){ 0 };
	h->request = request;
	h->reply = reply;
	h->body_at = h->body_room = 0;
	h->sink_failed = h->read_failed = false;
	h->next_tick = TICK_US;
	h->error[0] = '\0';
	h->md5 = (struct s3_digest){ 0 };
	url = s3_place_request(h->setup.place, request->key,
	    request->parameters, request->n_parameters);
	if (url != NULL)
		rc = perform(h, url, &headers);
	judge(h, reply, rc);
	s3_digest_done(&h->md5);
	/* The token is in there. */
	curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, (void *)NULL);
	curl_slist_free_all(headers);
	free(url);
}
