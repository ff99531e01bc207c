#include "tests/fuzz/tls/tls_fuzz.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/shown.h"
#include "tests/unit/transport/tls/tls_fixture.h"
#include "transport/base/log.h"
#include "transport/tls/tls_internal.h"

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s\n", #cond);                        \
			abort();                                               \
		}                                                              \
	} while (0)

/* Honest handshakes need fewer. */
#define TURNS_MAX 60

/* Made once; the files are read, and gone. */
static struct tls_context *contexts[2];

static void
make_contexts(void)
{
	struct fix_wish server = { .cn = "collector", .eku = "serverAuth",
		.sans = "DNS:collector" };
	struct fix_wish client = { .cn = "device", .eku = "clientAuth",
		.role = "producer" };
	struct fix_cert *ca = fix_ca("Fuzz CA");
	struct fix_cert *own[2] = { fix_cert(ca, &server),
		fix_cert(ca, &client) };
	char err[TLS_ERROR_SIZE], *dir;
	struct tls_options o = { .allow_tls12 = true };
	int i;

	for (i = 0; i < 2; i++) {
		o.side = i == 0 ? TLS_SERVER : TLS_CLIENT;
		o.dir = dir = fix_side(ca, own[i]);
		contexts[o.side] = tls_context_new(&o, err, sizeof(err));
		CHECK(contexts[o.side] != NULL);
		fix_dir_free(dir);
		fix_cert_free(own[i]);
	}
	fix_cert_free(ca);
}

/* The input, as it is used up. */
struct script {
	const uint8_t *at;
	size_t left;
	size_t piece;
	size_t unharmed; /* until the next change */
	uint8_t change;  /* 0: no more */
};

static void
script_next_change(struct script *s)
{
	s->change = 0;
	if (s->left < 3)
		return;
	s->unharmed = (size_t)s->at[0] << 8 | s->at[1];
	s->change = s->at[2];
	s->at += 3;
	s->left -= 3;
}

static void
script_harm(struct script *s, uint8_t *bytes, size_t len)
{
	size_t i;

	for (i = 0; i < len && s->change != 0; i++) {
		if (s->unharmed > 0) {
			s->unharmed--;
			continue;
		}
		bytes[i] ^= s->change;
		script_next_change(s);
	}
}

/* One turn of the end under test.  False: it is over. */
static bool
step(struct tls_conn *t)
{
	struct iovec iov[2];
	char a[7] = "", b[300] = "";
	ssize_t n;
	int rc;

	rc = tls_conn_handshake(t);
	if (rc == 0) {
		CHECK(tls_conn_error(t)[0] == '\0');
		CHECK(!tls_conn_has_input(t));
		return true;
	}
	if (rc < 0)
		return false;
	iov[0].iov_base = a;
	iov[0].iov_len = sizeof(a);
	iov[1].iov_base = b;
	iov[1].iov_len = sizeof(b);
	do
		n = tls_conn_receive(t, iov, 2);
	while (n > 0);
	CHECK(n == 0 || errno != EAGAIN || !tls_conn_has_input(t));
	if (n == 0 || errno != EAGAIN)
		return false;
	n = tls_conn_send(t, iov, 2);
	return n >= 0 || errno == EAGAIN;
}

/* What it says afterwards is a line that a log may hold. */
static void
check_sentence(const struct tls_conn *t)
{
	CHECK(strlen(tls_conn_error(t)) < TLS_ERROR_SIZE);
	CHECK(is_shown(tls_conn_error(t)));
}

static void
drain(int fd)
{
	char bytes[4096];

	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static void
run_raw(struct tls_conn *t, int peer, struct script *s)
{
	size_t n;

	while (s->left > 0) {
		n = s->left < s->piece ? s->left : s->piece;
		if (send(peer, s->at, n, MSG_NOSIGNAL | MSG_DONTWAIT) !=
		    (ssize_t)n)
			return;
		s->at += n;
		s->left -= n;
		if (!step(t))
			return;
		drain(peer);
	}
}

/* Carries from one socket to another, by turns. */
static void
carry(int from, int to, struct script *harm)
{
	uint8_t bytes[4096];
	ssize_t n;

	while ((n = recv(from, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
		if (harm != NULL)
			script_harm(harm, bytes, (size_t)n);
		if (send(to, bytes, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			return;
	}
}

static void
run_honest(struct tls_conn *t, int peer, struct tls_conn *other, int far,
    struct script *s)
{
	int i;

	script_next_change(s);
	for (i = 0; i < TURNS_MAX; i++) {
		if (!step(other))
			shutdown(peer, SHUT_WR);
		carry(far, peer, s);
		if (!step(t))
			return;
		carry(peer, far, NULL);
	}
}

static void
new_pair(int fd[2])
{
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) == 0);
}

void
tls_fuzz_run(enum tls_side side, const uint8_t *data, size_t size)
{
	enum tls_side there = side == TLS_SERVER ? TLS_CLIENT : TLS_SERVER;
	struct script s = { 0 };
	struct tls_conn *t, *other = NULL;
	int near[2], far[2] = { -1, -1 };

	if (contexts[0] == NULL) {
		log_init("fuzz", LOG_LEVEL_ERROR);
		make_contexts();
	}
	if (size < 1)
		return;
	s.at = data + 1;
	s.left = size - 1;
	s.piece = (size_t)(data[0] >> 2) + 1;
	new_pair(near);
	t = tls_conn_new(contexts[side], near[0], "collector", "peer:1");
	CHECK(t != NULL);
	if (data[0] & 2)
		SSL_set_max_proto_version(t->ssl, TLS1_2_VERSION);
	CHECK(step(t));
	if (data[0] & 1) {
		new_pair(far);
		other = tls_conn_new(contexts[there], far[0], "collector",
		    "peer:2");
		CHECK(other != NULL);
		run_honest(t, near[1], other, far[1], &s);
		/* Nothing was changed: they agree. */
		CHECK(size > 1 ||
		    (tls_conn_is_open(t) && tls_conn_is_open(other)));
	} else {
		drain(near[1]);
		run_raw(t, near[1], &s);
	}
	/* The other end leaves, with what it said still unread. */
	shutdown(near[1], SHUT_WR);
	while (step(t))
		drain(near[1]);
	check_sentence(t);
	tls_conn_free(t);
	if (other != NULL) {
		check_sentence(other);
		tls_conn_free(other);
		close(far[0]);
		close(far[1]);
	}
	close(near[0]);
	close(near[1]);
}
