/*
 * An HTTP server that traces itself: a slice for each request, a counter of
 * connections, and a flow from the thread that accepts a connection to the one
 * that answers it.  docs/instrument.md goes through it.
 *
 *	http_server PORT
 */
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <tributary/track_event.h>
#include <unistd.h>

#define WORKERS 4
#define QUEUE   64

TRIBUTARY_CATEGORY(http, "http", "Requests and their parts", "");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int queue[QUEUE];
static unsigned first, waiting;
static atomic_int connections;

static void
count_connection(int by)
{
	struct tributary_track t = tributary_counter_track("connections",
	    TRIBUTARY_UNIT_COUNT, tributary_process_track());

	TRIBUTARY_COUNTER(http, &t, atomic_fetch_add(&connections, by) + by);
}

static void
answer(int fd)
{
	char request[2048] = "", method[8] = "", path[256] = "";
	const char *body = "Hello from a traced server.\n";
	char head[128];
	ssize_t n;

	TRIBUTARY_BEGIN(http, "read");
	n = recv(fd, request, sizeof(request) - 1, 0);
	TRIBUTARY_END(http, tributary_int("bytes", n));
	if (n <= 0 || sscanf(request, "%7s %255s", method, path) != 2)
		return;
	TRIBUTARY_SLICE(http, "respond", tributary_string("method", method),
	    tributary_string("path", path));
	n = snprintf(head, sizeof(head), "HTTP/1.0 200 OK\r\n"
	    "Content-Length: %zu\r\n\r\n", strlen(body));
	(void)!send(fd, head, (size_t)n, MSG_NOSIGNAL);
	(void)!send(fd, body, strlen(body), MSG_NOSIGNAL);
}

static void *
work(void *arg)
{
	int fd;

	tributary_set_thread_name(arg);
	for (;;) {
		pthread_mutex_lock(&lock);
		while (waiting == 0)
			pthread_cond_wait(&filled, &lock);
		fd = queue[first++ % QUEUE];
		waiting--;
		pthread_mutex_unlock(&lock);
		TRIBUTARY_BEGIN(http, "request",
		    tributary_flow_end((uint64_t)fd));
		answer(fd);
		close(fd);
		count_connection(-1);
		TRIBUTARY_END(http);
	}
	return NULL;
}

static int
listen_at(uint16_t port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
	    .sin_port = htons(port),
	    .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0 ||
	    listen(fd, QUEUE) != 0) {
		perror("http_server");
		exit(1);
	}
	return fd;
}

int
main(int argc, char **argv)
{
	static char name[] = "worker";
	int listener, fd, i;
	pthread_t thread;

	if (argc != 2)
		return fprintf(stderr, "usage: http_server PORT\n"), 2;
	tributary_start(NULL);
	listener = listen_at((uint16_t)atoi(argv[1]));
	for (i = 0; i < WORKERS; i++)
		pthread_create(&thread, NULL, work, name);
	for (;;) {
		if ((fd = accept(listener, NULL, NULL)) < 0)
			continue;
		TRIBUTARY_SLICE(http, "accept", tributary_flow((uint64_t)fd));
		count_connection(1);
		pthread_mutex_lock(&lock);
		if (waiting < QUEUE)
			queue[(first + waiting++) % QUEUE] = fd;
		else
			close(fd);
		pthread_cond_signal(&filled);
		pthread_mutex_unlock(&lock);
	}
}
