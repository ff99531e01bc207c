#include "tests/unit/transport/tls/fake_tls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "transport/tls/tls.h"

/* As a record layer has it: read from the socket, not asked for yet. */
#define INSIDE_MAX 16384u

struct fake_tls_plan fake_tls_plan;
int fake_tls_live;

struct tls_conn {
	struct fake_tls_plan plan;
	int fd;
	unsigned steps, receives, sends;
	bool done, ended, wants_write;
	size_t given;
	uint8_t inside[INSIDE_MAX];
	size_t at, end;
	/* As OpenSSL: what was refused has to be offered again. */
	size_t offered;
	uint8_t offered_first;
	char error[80];
	struct tls_identity id;
};

struct tls_context *
tls_context_new(const struct tls_options *o, char *err, size_t err_size)
{
	snprintf(err, err_size, "this is no TLS");
	return NULL;
}

int
tls_context_reload(struct tls_context *c, char *err, size_t err_size)
{
	return -1;
}

bool
tls_context_is_stale(const struct tls_context *c)
{
	return false;
}

void
tls_context_free(struct tls_context *c)
{
}

struct tls_conn *
tls_conn_new(struct tls_context *c, int fd, const char *host,
    const char *peer_text)
{
	struct tls_conn *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->plan = fake_tls_plan;
	t->fd = fd;
	snprintf(t->id.name, sizeof(t->id.name), "%s", FAKE_TLS_NAME);
	fake_tls_live++;
	return t;
}

void
tls_conn_free(struct tls_conn *t)
{
	if (t == NULL)
		return;
	/* The socket has to be there for the goodbye. */
	if (send(t->fd, "", 0, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
	    errno == EBADF)
		abort();
	fake_tls_live--;
	free(t);
}

/* Fills `inside` when it is empty; the result of recv(). */
static ssize_t
refill(struct tls_conn *t)
{
	ssize_t n;

	if (t->at < t->end)
		return 1;
	n = recv(t->fd, t->inside, sizeof(t->inside), MSG_DONTWAIT);
	t->at = 0;
	t->end = n > 0 ? (size_t)n : 0;
	return n;
}

bool
tls_conn_speaks_first(const struct tls_conn *t)
{
	return !t->plan.speaks_last;
}

int
tls_conn_handshake(struct tls_conn *t)
{
	ssize_t n;

	if (t->done)
		abort();
	t->wants_write = false;
	if (t->steps < t->plan.shake_steps) {
		t->wants_write =
		    (t->plan.shake_wants_write >> t->steps % 32) & 1;
		t->steps++;
		return 0;
	}
	while (t->plan.shake_bytes > 0) {
		if ((n = refill(t)) < 0 && errno == EAGAIN)
			return 0;
		if (n <= 0) {
			snprintf(t->error, sizeof(t->error), "it left");
			return -1;
		}
		t->at++;
		t->plan.shake_bytes--;
	}
	if (t->plan.shake_fails) {
		snprintf(t->error, sizeof(t->error), FAKE_TLS_SHAKE_ERROR);
		return -1;
	}
	t->done = true;
	return 1;
}

static ssize_t
not_now(struct tls_conn *t, bool wants_write)
{
	t->wants_write = wants_write;
	errno = EAGAIN;
	return -1;
}

ssize_t
tls_conn_receive(struct tls_conn *t, const struct iovec *iov, int niov)
{
	size_t total = 0, max = t->plan.receive_max, n;
	ssize_t r;
	int i;

	if (!t->done || t->ended)
		abort();
	t->wants_write = false;
	if (t->plan.receive_wants_write_every != 0 &&
	    ++t->receives % t->plan.receive_wants_write_every == 0)
		return not_now(t, true);
	if (t->plan.alert_after != 0 && t->given >= t->plan.alert_after) {
		snprintf(t->error, sizeof(t->error), FAKE_TLS_ALERT);
		t->ended = true;
		errno = EPROTO;
		return -1;
	}
	if ((r = refill(t)) <= 0) {
		if (r < 0 && errno == EAGAIN)
			return not_now(t, false);
		t->ended = true;
		return r;
	}
	for (i = 0; i < niov; i++) {
		n = t->end - t->at;
		if (n > iov[i].iov_len)
			n = iov[i].iov_len;
		if (max != 0 && n > max - total)
			n = max - total;
		memcpy(iov[i].iov_base, t->inside + t->at, n);
		t->at += n;
		total += n;
	}
	t->given += total;
	return (ssize_t)total;
}

ssize_t
tls_conn_send(struct tls_conn *t, const struct iovec *iov, int niov)
{
	struct iovec one = { iov[0].iov_base, iov[0].iov_len };
	struct msghdr msg = { .msg_iov = &one, .msg_iovlen = 1 };
	size_t total = 0;
	ssize_t n;
	int i;

	if (!t->done || niov < 1)
		abort();
	for (i = 0; i < niov; i++)
		total += iov[i].iov_len;
	if (total < t->offered || (t->offered != 0 &&
	    *(const uint8_t *)one.iov_base != t->offered_first))
		abort();
	t->offered = total;
	t->offered_first = *(const uint8_t *)one.iov_base;
	t->wants_write = false;
	if (t->plan.send_wants_read_every != 0 &&
	    ++t->sends % t->plan.send_wants_read_every == 0)
		return not_now(t, false);
	if (t->plan.send_max != 0 && one.iov_len > t->plan.send_max)
		one.iov_len = t->plan.send_max;
	n = sendmsg(t->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return not_now(t, true);
	if (n >= 0)
		t->offered = 0;
	return n;
}

bool
tls_conn_wants_write(const struct tls_conn *t)
{
	return t->wants_write;
}

bool
tls_conn_has_input(const struct tls_conn *t)
{
	return t->at < t->end;
}

const char *
tls_conn_error(const struct tls_conn *t)
{
	return t->error;
}

const struct tls_identity *
tls_conn_identity(const struct tls_conn *t)
{
	return &t->id;
}

struct tls_identity *
tls_conn_take_identity(struct tls_conn *t)
{
	struct tls_identity *id = malloc(sizeof(*id));

	if (id != NULL)
		*id = t->id;
	return id;
}

void
tls_identity_free(struct tls_identity *id)
{
	free(id);
}

void
tls_conn_describe(const struct tls_conn *t, char *out, size_t out_size)
{
	snprintf(out, out_size, "none");
}
