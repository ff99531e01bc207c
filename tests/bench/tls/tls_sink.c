#include "tests/bench/tls/tls_sink.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/ingest/process.h"
#include "tests/load/load_conn.h"
#include "tests/load/load_tls.h"

/* What the collector reads with. */
#define READ_BYTES (128u * 1024u)
#define BACKLOG    4096

struct guest {
	int fd;
	struct tls_conn *tls;
	bool shaken;
};

struct sink {
	int listener;
	int ep;
	struct tls_context *context;
	struct guest *guests;
	size_t expected;
	size_t accepted;
	size_t shaken;
	size_t gone;
	double cpu_before;
	struct tls_sink_result result;
};

static double
cpu_so_far(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
	    (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static void
watch(const struct sink *s, int op, int fd, uint32_t events, void *ptr)
{
	struct epoll_event ev = { .events = events, .data.ptr = ptr };

	if (epoll_ctl(s->ep, op, fd, &ev) != 0)
		load_die("epoll: %s", strerror(errno));
}

static void
take_guests(struct sink *s)
{
	struct guest *g;
	int fd, one = 1;

	while (s->accepted < s->expected) {
		fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK);
		if (fd < 0)
			return;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		g = &s->guests[s->accepted++];
		g->fd = fd;
		g->tls = tls_conn_new(s->context, fd, NULL, "guest");
		if (g->tls == NULL)
			load_die("no memory");
		watch(s, EPOLL_CTL_ADD, fd, EPOLLIN, g);
	}
}

static void
shake(struct sink *s, struct guest *g)
{
	struct iovec hello = { (void *)"!", 1 };
	int rc = tls_conn_handshake(g->tls);

	if (rc < 0)
		load_die("the sink's handshake: %s", tls_conn_error(g->tls));
	if (rc == 0) {
		watch(s, EPOLL_CTL_MOD, g->fd,
		    tls_conn_wants_write(g->tls) ? EPOLLOUT : EPOLLIN, g);
		return;
	}
	g->shaken = true;
	watch(s, EPOLL_CTL_MOD, g->fd, EPOLLIN, g);
	if (tls_conn_send(g->tls, &hello, 1) != 1)
		load_die("the sink's greeting: %s", tls_conn_error(g->tls));
	if (++s->shaken == s->expected) {
		s->result.shaken_ns = load_now_ns();
		s->result.handshake_cpu = cpu_so_far() - s->cpu_before;
	}
}

static void
read_away(struct sink *s, struct guest *g)
{
	static uint8_t buf[READ_BYTES];
	struct iovec iov = { buf, sizeof(buf) };
	ssize_t n;

	do {
		n = tls_conn_receive(g->tls, &iov, 1);
		if (n > 0)
			s->result.bytes += (uint64_t)n;
	} while (n > 0 && tls_conn_has_input(g->tls));
	if (n > 0 || (n < 0 && errno == EAGAIN))
		return;
	tls_conn_free(g->tls);
	close(g->fd);
	s->gone++;
}

static void
serve(struct sink *s)
{
	struct epoll_event events[128];
	struct guest *g;
	int i, ready;

	watch(s, EPOLL_CTL_ADD, s->listener, EPOLLIN, NULL);
	while (s->gone < s->expected) {
		ready = epoll_wait(s->ep, events, 128, -1);
		for (i = 0; i < ready; i++) {
			g = events[i].data.ptr;
			if (g == NULL)
				take_guests(s);
			else if (!g->shaken)
				shake(s, g);
			if (g != NULL && g->shaken)
				read_away(s, g);
		}
	}
}

static void
child(int listener, int result, const char *tls_dir, size_t n)
{
	struct sink s = { .listener = listener, .expected = n };

	s.context = load_tls_context(tls_dir, TLS_SERVER);
	s.guests = calloc(n, sizeof(*s.guests));
	s.ep = epoll_create1(0);
	if (s.guests == NULL || s.ep < 0)
		load_die("no memory");
	s.cpu_before = cpu_so_far();
	serve(&s);
	s.result.ended_ns = load_now_ns();
	s.result.read_cpu = cpu_so_far() - s.cpu_before -
	    s.result.handshake_cpu;
	if (write(result, &s.result, sizeof(s.result)) != sizeof(s.result))
		_exit(1);
	_exit(0);
}

void
tls_sink_start(struct tls_sink *s, const char *tls_dir, size_t n, int cpu)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	socklen_t len = sizeof(sin);
	int listener, fds[2];

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    0);
	if (listener < 0 || pipe(fds) < 0 ||
	    bind(listener, (struct sockaddr *)&sin, len) < 0 ||
	    listen(listener, BACKLOG) < 0 ||
	    getsockname(listener, (struct sockaddr *)&sin, &len) < 0)
		load_die("sink: %s", strerror(errno));
	snprintf(s->address, sizeof(s->address), "tls://127.0.0.1:%d",
	    ntohs(sin.sin_port));
	if ((s->pid = fork()) < 0)
		load_die("fork: %s", strerror(errno));
	if (s->pid == 0) {
		close(fds[0]);
		process_pin(0, cpu);
		child(listener, fds[1], tls_dir, n);
	}
	close(listener);
	close(fds[1]);
	s->result = fds[0];
}

void
tls_sink_wait(struct tls_sink *s, struct tls_sink_result *out)
{
	if (read(s->result, out, sizeof(*out)) != sizeof(*out))
		load_die("the sink died");
	close(s->result);
	waitpid(s->pid, NULL, 0);
}
