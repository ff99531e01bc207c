#include "tests/bench/ingest/process.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/load/load_conn.h"

#define SINK_READ_BYTES (128u * 1024u)

static void
exec_daemon(const char *binary, const struct process_daemon *d, int notify,
    const char *tls_dir, const char *config)
{
	int n = 7;
	const char *argv[16] = { binary, "--producer-socket", NULL,
		"--producer-socket", "127.0.0.1:0", "--consumer-socket", NULL };
	char producer[PROCESS_ADDRESS_MAX], consumer[PROCESS_ADDRESS_MAX];
	char log[PROCESS_ADDRESS_MAX], number[16];
	int fd;

	snprintf(producer, sizeof(producer), "%s/p", d->folder);
	snprintf(consumer, sizeof(consumer), "%s/c", d->folder);
	snprintf(log, sizeof(log), "%s/log", d->folder);
	snprintf(number, sizeof(number), "%d", notify);
	setenv("TRACED_NOTIFY_FD", number, 1);
	fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	argv[2] = producer;
	argv[6] = consumer;
	if (tls_dir != NULL) {
		argv[n++] = "--producer-socket";
		argv[n++] = "tls://127.0.0.1:0";
		argv[n++] = "--tls-dir";
		argv[n++] = tls_dir;
	}
	if (config != NULL) {
		argv[n++] = "--config";
		argv[n++] = config;
	}
	execv(binary, (char *const *)argv);
	_exit(127);
}

/* The addresses after "listening for producers on " that are no paths. */
static void
find_addresses(struct process_daemon *d)
{
	static const char mark[] = "listening for producers on ";
	char path[PROCESS_ADDRESS_MAX], line[512], *at;
	FILE *log;

	snprintf(path, sizeof(path), "%s/log", d->folder);
	if ((log = fopen(path, "r")) == NULL)
		load_die("%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), log) != NULL) {
		at = strstr(line, mark);
		if (at == NULL)
			continue;
		at += sizeof(mark) - 1;
		at[strcspn(at, " \n")] = '\0';
		if (strncmp(at, "tcp:", 4) == 0)
			at += 4;
		if (strncmp(at, "tls://", 6) == 0)
			snprintf(d->producers_tls, sizeof(d->producers_tls),
			    "%s", at);
		else if (strchr(at, '/') == NULL)
			snprintf(d->producers_tcp, sizeof(d->producers_tcp),
			    "%s", at);
	}
	fclose(log);
	if (d->producers_tcp[0] == '\0')
		load_die("%s: no TCP address in the daemon's log", path);
}

void
process_daemon_start(struct process_daemon *d, const char *binary,
    const char *tls_dir)
{
	process_daemon_start_with(d, binary, tls_dir, NULL);
}

void
process_daemon_start_with(struct process_daemon *d, const char *binary,
    const char *tls_dir, const char *config)
{
	int notify[2];
	char byte = 0;

	memset(d, 0, sizeof(*d));
	snprintf(d->folder, sizeof(d->folder), "/tmp/trib-bench-XXXXXX");
	if (mkdtemp(d->folder) == NULL || pipe(notify) < 0)
		load_die("%s: %s", d->folder, strerror(errno));
	if ((d->pid = fork()) < 0)
		load_die("fork: %s", strerror(errno));
	if (d->pid == 0) {
		close(notify[0]);
		exec_daemon(binary, d, notify[1], tls_dir, config);
	}
	close(notify[1]);
	if (read(notify[0], &byte, 1) != 1 || byte != '1')
		load_die("%s did not become ready, see %s/log", binary,
		    d->folder);
	close(notify[0]);
	snprintf(d->producers_unix, sizeof(d->producers_unix), "%s/p",
	    d->folder);
	snprintf(d->consumers, sizeof(d->consumers), "%s/c", d->folder);
	find_addresses(d);
	if (tls_dir != NULL && d->producers_tls[0] == '\0')
		load_die("no TLS address in %s/log", d->folder);
}

/* The last line of a file, which has short ones. */
static void
last_line(const char *path, char *out, size_t size)
{
	char line[512];
	FILE *file = fopen(path, "r");

	out[0] = '\0';
	if (file == NULL)
		return;
	while (fgets(line, sizeof(line), file) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		snprintf(out, size, "%s", line);
	}
	fclose(file);
}

void
process_daemon_stop(struct process_daemon *d)
{
	char path[PROCESS_ADDRESS_MAX], line[512];
	int status;

	kill(d->pid, SIGTERM);
	if (waitpid(d->pid, &status, 0) != d->pid)
		load_die("waitpid: %s", strerror(errno));
	if (WIFSIGNALED(status))
		load_die("the daemon was ended by signal %d, see %s/log",
		    WTERMSIG(status), d->folder);
	snprintf(path, sizeof(path), "%s/log", d->folder);
	/* On a busy machine it may be sessions that take more than 5 s. */
	if (WEXITSTATUS(status) != 0) {
		last_line(path, line, sizeof(line));
		load_die("the daemon ended with status %d (%s), see %s",
		    WEXITSTATUS(status), line, path);
	}
	unlink(path);
	rmdir(d->folder);
}

double
process_cpu(pid_t pid)
{
	char path[64];
	unsigned long user, system;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if ((f = fopen(path, "r")) == NULL)
		load_die("%s: %s", path, strerror(errno));
	if (fscanf(f, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u "
	    "%*u %lu %lu", &user, &system) != 2)
		load_die("%s: cannot read it", path);
	fclose(f);
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

void
process_pin(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (cpu < sysconf(_SC_NPROCESSORS_ONLN) &&
	    sched_setaffinity(pid, sizeof(set), &set) != 0)
		load_die("cannot choose a processor: %s", strerror(errno));
}

static uint64_t
status_kb(pid_t pid, const char *key)
{
	char path[64], line[256];
	uint64_t kb = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if ((f = fopen(path, "r")) == NULL)
		load_die("%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, key, strlen(key)) == 0)
			kb = strtoull(line + strlen(key) + 1, NULL, 10);
	fclose(f);
	return kb;
}

uint64_t
process_rss(pid_t pid)
{
	return status_kb(pid, "VmRSS");
}

uint64_t
process_peak(pid_t pid)
{
	return status_kb(pid, "VmHWM");
}

void
process_reset_peak(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/clear_refs", (int)pid);
	if ((fd = open(path, O_WRONLY)) < 0 || write(fd, "5", 1) != 1)
		load_die("%s: %s", path, strerror(errno));
	close(fd);
}

static void
sink_read_all(int listener, size_t n, struct process_sink_result *out)
{
	struct epoll_event ev, events[128];
	static uint8_t buf[SINK_READ_BYTES];
	ssize_t got;
	size_t i;
	int ep, fd, ready, k;

	ep = epoll_create1(0);
	for (i = 0; i < n; i++) {
		fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
		ev.events = EPOLLIN;
		ev.data.fd = fd;
		epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
	}
	while (n > 0) {
		ready = epoll_wait(ep, events, 128, -1);
		for (k = 0; k < ready; k++) {
			got = read(events[k].data.fd, buf, sizeof(buf));
			if (got > 0) {
				out->bytes += (uint64_t)got;
			} else if (got == 0) {
				close(events[k].data.fd);
				n--;
			}
		}
	}
}

static void
sink_child(int listener, size_t n, int result)
{
	struct process_sink_result out = { 0 };
	struct rusage before, after;

	getrusage(RUSAGE_SELF, &before);
	sink_read_all(listener, n, &out);
	out.ended_ns = load_now_ns();
	getrusage(RUSAGE_SELF, &after);
	out.cpu = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec +
	    after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
	    (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec +
	    after.ru_stime.tv_usec - before.ru_stime.tv_usec) / 1e6;
	if (write(result, &out, sizeof(out)) != sizeof(out))
		_exit(1);
	_exit(0);
}

void
process_sink_start(struct process_sink *s, size_t n)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	socklen_t len = sizeof(sin);
	int listener, fds[2];

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || pipe(fds) < 0 ||
	    bind(listener, (struct sockaddr *)&sin, len) < 0 ||
	    listen(listener, 128) < 0 ||
	    getsockname(listener, (struct sockaddr *)&sin, &len) < 0)
		load_die("sink: %s", strerror(errno));
	s->port = ntohs(sin.sin_port);
	if ((s->pid = fork()) < 0)
		load_die("fork: %s", strerror(errno));
	if (s->pid == 0) {
		close(fds[0]);
		sink_child(listener, n, fds[1]);
	}
	close(listener);
	close(fds[1]);
	s->result = fds[0];
}

void
process_sink_wait(struct process_sink *s, struct process_sink_result *out)
{
	if (read(s->result, out, sizeof(*out)) != sizeof(*out))
		load_die("the sink died");
	close(s->result);
	waitpid(s->pid, NULL, 0);
}
