#include "transport/tls/tls_bio.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "transport/tls/tls_internal.h"

/*
 * The method is made once and lives as long as the process, as OpenSSL's own
 * do.  All but reading and writing is that of OpenSSL's socket BIO, state and
 * control calls of kernel TLS included.
 */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static BIO_METHOD *method; /* NULL: no memory */
static int (*socket_read)(BIO *, char *, int);
static int (*socket_write)(BIO *, const char *, int);

static struct tls_conn *
bio_conn(BIO *b)
{
	return (struct tls_conn *)(void *)BIO_get_callback_arg(b);
}

static int
bio_read(BIO *b, char *out, int len)
{
	struct tls_conn *t = bio_conn(b);
	size_t room;
	int n;

	/*
	 * The socket was emptied a moment ago: do not ask it again.  Nor where
	 * its bytes hold next to nothing: OpenSSL goes on by itself until there
	 * is something to show, and a flood of new keys would hold the loop.
	 */
	if (t->input == INPUT_DRAINED || (tls_conn_is_open(t) &&
		t->fetched >= t->yielded + TLS_READ_BUFFER_BYTES)) {
		BIO_clear_retry_flags(b);
		BIO_set_retry_read(b);
		errno = EAGAIN;
		return -1;
	}
	n = socket_read(b, out, len);
	if (n <= 0)
		return n;
	if (t->n_head < TLS_HEAD_BYTES && !tls_conn_is_open(t)) {
		room = TLS_HEAD_BYTES - t->n_head;
		if (room > (size_t)n)
			room = (size_t)n;
		memcpy(t->head + t->n_head, out, room);
		t->n_head += room;
	}
	t->fetched += (size_t)n;
	/* Kernel TLS gives one record at a time, however many there are. */
	if (tls_conn_is_open(t) && n < len && !BIO_get_ktls_recv(b))
		t->input = INPUT_DRAINED;
	return n;
}

static int
bio_write(BIO *b, const char *in, int len)
{
	struct tls_conn *t = bio_conn(b);
	ssize_t n;

	/* Control messages take another way into the kernel. */
	if (BIO_get_ktls_send(b))
		return socket_write(b, in, len);
	n = send(t->fd, in, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
	BIO_clear_retry_flags(b);
	if (n <= 0 && BIO_sock_should_retry((int)n))
		BIO_set_retry_write(b);
	return (int)n;
}

static void
method_make(void)
{
	const BIO_METHOD *of = BIO_s_socket();
	BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOCKET, "tributary socket");

	if (m == NULL)
		return;
	socket_read = BIO_meth_get_read(of);
	socket_write = BIO_meth_get_write(of);
	if (BIO_meth_set_read(m, bio_read) != 1 ||
	    BIO_meth_set_write(m, bio_write) != 1 ||
	    BIO_meth_set_puts(m, BIO_meth_get_puts(of)) != 1 ||
	    BIO_meth_set_ctrl(m, BIO_meth_get_ctrl(of)) != 1 ||
	    BIO_meth_set_create(m, BIO_meth_get_create(of)) != 1 ||
	    BIO_meth_set_destroy(m, BIO_meth_get_destroy(of)) != 1) {
		BIO_meth_free(m);
		return;
	}
	method = m;
}

BIO *
tls_bio_new(struct tls_conn *t)
{
	BIO *b;

	pthread_once(&once, method_make);
	if (method == NULL || (b = BIO_new(method)) == NULL)
		return NULL;
	BIO_set_fd(b, t->fd, BIO_NOCLOSE);
	BIO_set_callback_arg(b, (char *)t);
	return b;
}
