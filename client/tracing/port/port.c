#include "client/tracing/port/port.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "client/tracing/port/port_dial.h"
#include "client/tracing/port/port_internal.h"
#include "protos/fields.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/service_names.h"

static const struct port_service producer_port = {
	.name = "ProducerPort",
	.refusal = "the service takes no producers at this address",
	.methods = {
		[PORT_INITIALIZE] = "InitializeConnection",
		[PORT_REGISTER_SOURCE] = "RegisterDataSource",
		[PORT_UPDATE_SOURCE] = "UpdateDataSource",
		[PORT_COMMIT] = "CommitData",
		[PORT_REGISTER_WRITER] = "RegisterTraceWriter",
		[PORT_UNREGISTER_WRITER] = "UnregisterTraceWriter",
		[PORT_STARTED] = "NotifyDataSourceStarted",
		[PORT_STOPPED] = "NotifyDataSourceStopped",
		[PORT_TRIGGER] = "ActivateTriggers",
		[PORT_COMMANDS] = "GetAsyncCommand",
		[PORT_SYNC] = "Sync",
		[PORT_INIT_MACHINE] = PRODUCER_INIT_MACHINE,
		[PORT_SYNC_CLOCK] = PRODUCER_SYNC_CLOCK,
	},
};
_Static_assert(PORT_METHODS <= PORT_WIRE_METHODS_MAX, "room for all");

uint64_t
port_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void
port_log(struct port *p, enum tributary_log_level level, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (p->options.log == NULL)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	p->options.log(p->options.arg, level, text);
}

/* ---- Calls ---- */

void
port_call(struct port *p, enum port_method m, struct pb_writer *w)
{
	if (w->failed)
		p->wire.out.failed = true; /* ends the connection */
	else
		port_wire_call(&p->wire, m, w->data, w->len, false);
	pb_writer_reset(w);
}

void
port_call_id(struct port *p, enum port_method m, uint64_t id)
{
	struct pb_writer w;

	pb_writer_init(&w);
	pb_put_uint(&w, NotifyDataSourceStartedRequest_data_source_id, id);
	port_call(p, m, &w);
	pb_writer_done(&w);
}

/* ---- Memory ---- */

static void
wake_cb(void *arg)
{
	port_wake(arg);
}

static bool
has_hung_up(const struct port *p)
{
	struct pollfd fd = { .fd = p->wire.fd, .events = POLLRDHUP };

	return poll(&fd, 1, 0) > 0 &&
	    (fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

/*
 * A callback on the port's thread waits for a chunk.  The end of the connection
 * is noticed here, too, as this thread does nothing else while it waits.
 */
static void
tell_cb(void *arg)
{
	struct port *p = arg;

	port_commit(p, false);
	if (!port_wire_send(&p->wire) || has_hung_up(p))
		chunk_memory_close(p->memory);
}

bool
port_use_memory(struct port *p, struct shm *shm)
{
	p->memory = chunk_memory_new(shm, wake_cb, p);
	if (p->memory == NULL) {
		shm_free(shm);
		return false;
	}
	chunk_memory_set_owner(p->memory, tell_cb, p);
	return true;
}

/* The memory that a service gets from us, or does not see. */
static bool
make_memory(struct port *p)
{
	struct shm *shm;
	size_t size, page;

	shm_valid_sizes(p->options.memory_bytes, p->options.page_bytes, &size,
	    &page);
	return (shm = shm_new(size, page)) != NULL && port_use_memory(p, shm);
}

static void
drop_memory(struct port *p)
{
	if (p->memory != NULL)
		chunk_memory_close(p->memory);
	chunk_memory_unref(p->memory);
	p->memory = NULL;
}

/* ---- The connection ---- */

/* Jitter: not all producers come at once to a service that is back. */
static uint64_t
retry_pause(struct port *p)
{
	uint64_t ms = PORT_RETRY_FIRST_MS;
	uint16_t r = 0;
	unsigned i;

	for (i = 0; i < p->failures && ms < PORT_RETRY_LAST_MS; i++)
		ms *= 2;
	if (ms > PORT_RETRY_LAST_MS)
		ms = PORT_RETRY_LAST_MS;
	p->failures++;
	(void)!getrandom(&r, sizeof(r), GRND_NONBLOCK);
	return ms - ms / 4 * r / UINT16_MAX;
}

static void
end_instances(struct port *p)
{
	struct tributary_instance *i;

	while ((i = LIST_FIRST(&p->instances)) != NULL) {
		LIST_REMOVE(i, link);
		instance_free(i);
	}
}

static void
tell_waiters(struct port *p, bool ok)
{
	struct port_waiter *w;

	while ((w = STAILQ_FIRST(&p->waiters)) != NULL) {
		STAILQ_REMOVE_HEAD(&p->waiters, link);
		w->done(w->arg, ok);
		free(w);
		if (ok)
			return; /* one reply, one waiter */
	}
}

/* Back to PORT_WAITING, without a word. */
static void
reset(struct port *p)
{
	struct port_flush *f;

	/* No chunk is to be had any more: threads that wait go on. */
	if (p->memory != NULL)
		chunk_memory_close(p->memory);
	end_instances(p);
	drop_memory(p);
	while ((f = TAILQ_FIRST(&p->flushes)) != NULL) {
		TAILQ_REMOVE(&p->flushes, f, link);
		free(f);
	}
	port_wire_done(&p->wire);
	port_clocks_end(p);
	p->n_registered = p->registering = p->n_refused = 0;
	p->settled = false;
	p->state = PORT_WAITING;
	tell_waiters(p, false);
}

/* Where the program asked for it, log hears nothing of the connection. */
static bool
tell_state(struct port *p, bool connected, int error, const char *why)
{
	if (p->options.state == NULL)
		return false;
	p->options.state(p->options.arg, connected, error, why);
	return true;
}

static const char *
where(const struct port *p)
{
	return p->options.connect != NULL ? "the service" : p->address.text;
}

/* error: an errno, where the connection was not made; else 0. */
static void
lose(struct port *p, int error, const char *why)
{
	bool was_ready = p->state == PORT_READY;

	if (p->state == PORT_WAITING)
		return;
	reset(p);
	p->due_ms = port_now_ms() + retry_pause(p);
	if (!tell_state(p, false, error, why) &&
	    (was_ready || p->failures == 1))
		port_log(p, TRIBUTARY_LOG_WARNING, "Not connected to %s: %s.",
		    where(p), why);
}

void
port_disconnect(struct port *p, const char *why)
{
	lose(p, 0, why);
}

void
port_settle(struct port *p)
{
	if (p->state != PORT_READY || p->settled || p->registering > 0)
		return;
	p->settled = true;
	p->failures = 0;
	if (!tell_state(p, true, 0, NULL))
		port_log(p, TRIBUTARY_LOG_INFO, "Connected to %s.", where(p));
}

static bool
set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
	    fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

/* A socket that is connected or connecting; -1 with errno. */
static int
dial(struct port *p)
{
	unsigned n = 1;
	int fd;

	if (p->options.connect != NULL) {
		p->address_left = false;
		if ((fd = p->options.connect(p->options.arg)) >= 0 &&
		    !set_nonblocking(fd)) {
			close(fd);
			fd = -1;
		}
		return fd;
	}
	do {
		fd = port_dial(&p->address, p->address_at++, &n);
		p->address_left = p->address_at < n;
	} while (fd < 0 && p->address_left);
	return fd;
}

static void
begin_connect(struct port *p)
{
	int error, fd = dial(p);

	if (fd < 0) {
		error = errno;
		p->due_ms = port_now_ms() + retry_pause(p);
		if (!tell_state(p, false, error, strerror(error)) &&
		    p->failures == 1)
			port_log(p, TRIBUTARY_LOG_INFO, "Waiting for the "
			    "service at %s: %s.", p->address.text,
			    strerror(error));
		return;
	}
	port_wire_init(&p->wire, fd, &producer_port);
	p->state = PORT_CONNECTING;
	p->due_ms = port_now_ms() + (p->options.connect != NULL ?
	    PORT_TUNNEL_MS : PORT_ANSWER_MS);
}

/* The socket did not become connected: its name's next address, if any. */
static void
not_connected(struct port *p, int error)
{
	if (!p->address_left) {
		lose(p, error, strerror(error));
		return;
	}
	port_wire_done(&p->wire);
	p->state = PORT_WAITING;
	begin_connect(p);
}

static enum port_reach
find_reach(const struct port *p)
{
	switch (p->options.reach) {
	case TRIBUTARY_REACH_NETWORK:
		return PORT_REACH_NETWORK;
	case TRIBUTARY_REACH_TUNNEL:
		return PORT_REACH_TUNNEL;
	default:
		break;
	}
	if (!port_dial_is_unix(p->wire.fd))
		return PORT_REACH_NETWORK;
	return port_dial_is_tunnel(p->wire.fd) ? PORT_REACH_TUNNEL :
	    PORT_REACH_DIRECT;
}

static void
connected(struct port *p)
{
	struct pb_writer own;
	int error;

	if ((error = port_dial_error(p->wire.fd)) != 0) {
		not_connected(p, error);
		return;
	}
	p->reach = find_reach(p);
	pb_writer_init(&own);
	port_put_identity(p, &own);
	port_wire_bind(&p->wire, own.len > 0 && !own.failed ? &own : NULL);
	pb_writer_done(&own);
	p->state = PORT_BINDING;
	p->due_ms = port_now_ms() + (p->options.connect != NULL ?
	    PORT_TUNNEL_MS : PORT_ANSWER_MS);
}

static void
bound(struct port *p)
{
	struct pb_writer w;
	struct shm *shm;
	bool ok = true;

	if (p->state != PORT_BINDING)
		return;
	if (!make_memory(p)) {
		port_disconnect(p, "there is no memory");
		return;
	}
	shm = chunk_memory_shm(p->memory);
	p->provided = p->reach == PORT_REACH_DIRECT;
	pb_writer_init(&w);
	pb_put_uint(&w,
	    InitializeConnectionRequest_shared_memory_page_size_hint_bytes,
	    shm_page_size(shm));
	pb_put_uint(&w,
	    InitializeConnectionRequest_shared_memory_size_hint_bytes,
	    shm_size(shm));
	pb_put_string(&w, InitializeConnectionRequest_producer_name,
	    p->options.name);
	pb_put_uint(&w, InitializeConnectionRequest_smb_scraping_mode,
	    InitializeConnectionRequest_SMB_SCRAPING_ENABLED);
	if (p->provided)
		pb_put_uint(&w,
		    InitializeConnectionRequest_producer_provided_shmem, 1);
	pb_put_string(&w, InitializeConnectionRequest_sdk_version,
	    "tributary " TRIBUTARY_VERSION);
	if (w.failed)
		ok = false;
	else if (p->provided)
		ok = port_wire_call_with_fd(&p->wire, PORT_INITIALIZE, w.data,
		    w.len, shm_fd(shm));
	else
		port_wire_call(&p->wire, PORT_INITIALIZE, w.data, w.len, true);
	pb_writer_done(&w);
	p->state = PORT_INITIALIZING;
	if (ok)
		port_wire_call(&p->wire, PORT_COMMANDS, NULL, 0, true);
	else
		port_disconnect(p, "the service took no request");
}

static void
initialized(struct port *p, const struct port_event *e)
{
	struct pb_reader r;
	struct pb_field f;
	bool taken = false;

	if (p->state != PORT_INITIALIZING)
		return;
	if (!e->ok) {
		port_disconnect(p, "the service refused this producer");
		return;
	}
	p->emulated = false;
	pb_init(&r, e->data, e->len);
	while (pb_next(&r, &f)) {
		if (f.wire != PB_VARINT)
			continue;
		if (f.number == InitializeConnectionResponse_use_shmem_emulation)
			p->emulated = f.value != 0;
		if (f.number ==
		    InitializeConnectionResponse_using_shmem_provided_by_producer)
			taken = f.value != 0;
	}
	if (!taken && !p->emulated)
		drop_memory(p); /* SetupTracing brings the service's */
	p->state = PORT_READY;
	port_introduce_machine(p);
	port_sources_changed(p);
	port_settle(p);
}

/* ---- What came ---- */

static void
replied(struct port *p, const struct port_event *e)
{
	switch (e->method) {
	case PORT_INITIALIZE:
		initialized(p, e);
		break;
	case PORT_COMMANDS:
		if (e->ok && e->more)
			port_command(p, e->data, e->len);
		else
			port_disconnect(p, "the service ended the connection");
		break;
	case PORT_SYNC:
		tell_waiters(p, true);
		break;
	case PORT_REGISTER_SOURCE:
		port_source_registered(p, e);
		break;
	case PORT_INIT_MACHINE:
		port_machine_introduced(p, e);
		break;
	case PORT_SYNC_CLOCK:
		port_clock_replied(p, e);
		break;
	default:
		break;
	}
}

static const char *
closed_words(const struct port *p)
{
	return p->state == PORT_BINDING && p->address.kind == ADDR_TCP ?
	    "the service closed the connection: does it expect TLS?" :
	    "the service closed the connection";
}

static void
receive(struct port *p)
{
	struct port_event e;

	if (!port_wire_receive(&p->wire)) {
		port_disconnect(p, closed_words(p));
		return;
	}
	while (p->state != PORT_WAITING) {
		port_wire_next(&p->wire, &e);
		if (e.kind == PORT_NOTHING)
			return;
		if (e.kind == PORT_BOUND)
			bound(p);
		else if (e.kind == PORT_REPLY)
			replied(p, &e);
		else
			port_disconnect(p, e.why);
	}
}

/* ---- The thread's turns ---- */

void
port_wake(struct port *p)
{
	uint64_t one = 1;
	int saved = errno;

	(void)!write(p->wake_fd, &one, sizeof(one));
	errno = saved;
}

int
port_poll(struct port *p, struct pollfd fds[PORT_FDS])
{
	uint64_t due_ms = p->due_ms, now = port_now_ms();

	fds[0] = (struct pollfd){ .fd = p->wake_fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = p->wire.fd, .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = p->state == PORT_WAITING ?
	    p->folder_fd : -1, .events = POLLIN };
	fds[3] = (struct pollfd){ .fd = p->jumps_fd, .events = POLLIN };
	if (p->state == PORT_CONNECTING || port_wire_queued(&p->wire) > 0)
		fds[1].events |= POLLOUT;
	if (p->state == PORT_READY && !port_clocks_due(p, &due_ms))
		return -1;
	if (due_ms <= now)
		return 0;
	return due_ms - now > INT_MAX ? INT_MAX : (int)(due_ms - now);
}

static void
drain(int fd)
{
	char buf[4096];

	while (read(fd, buf, sizeof(buf)) > 0)
		;
}

static void
wait_is_over(struct port *p)
{
	if (p->state == PORT_CONNECTING) {
		not_connected(p, ETIMEDOUT);
	} else if (p->state != PORT_WAITING) {
		port_disconnect(p, "the service did not answer");
	} else {
		p->address_at = 0;
		begin_connect(p);
	}
}

void
port_run(struct port *p, const struct pollfd fds[PORT_FDS])
{
	if (fds[0].revents != 0)
		drain(p->wake_fd);
	if (fds[2].fd >= 0 && fds[2].revents != 0) {
		/* A socket may have appeared. */
		drain(p->folder_fd);
		p->failures = 0;
		p->due_ms = 0;
	}
	if (p->state == PORT_CONNECTING && fds[1].revents != 0)
		connected(p);
	else if (p->state != PORT_WAITING && fds[1].fd == p->wire.fd &&
	    (fds[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
		receive(p);
	if (p->state != PORT_READY && p->due_ms <= port_now_ms())
		wait_is_over(p);
	port_clocks_run(p, fds[3].fd >= 0 && fds[3].revents != 0);
	port_take_notes(p);
	port_commit(p, false);
	if (p->state > PORT_CONNECTING && !port_wire_send(&p->wire))
		port_disconnect(p, "the service closed the connection");
	/* The socket took some: more may be told. */
	if (p->state == PORT_READY && p->emulated)
		port_commit(p, false);
}

bool
port_is_connected(const struct port *p)
{
	return p->settled;
}

/* ---- Requests of the program ---- */

void
port_trigger(struct port *p, const char *name)
{
	struct pb_writer w;

	if (p->state != PORT_READY)
		return;
	pb_writer_init(&w);
	pb_put_string(&w, ActivateTriggersRequest_trigger_names, name);
	port_call(p, PORT_TRIGGER, &w);
	pb_writer_done(&w);
}

void
port_flush(struct port *p, void (*done)(void *arg, bool ok), void *arg)
{
	struct tributary_instance *i;
	struct port_waiter *w;

	if (p->state != PORT_READY || (w = calloc(1, sizeof(*w))) == NULL) {
		done(arg, false);
		return;
	}
	w->done = done;
	w->arg = arg;
	STAILQ_INSERT_TAIL(&p->waiters, w, link);
	LIST_FOREACH(i, &p->instances, link)
		instance_hand_over(i);
	port_commit(p, true);
	/* The service answers when it has handled what was sent before. */
	port_wire_call(&p->wire, PORT_SYNC, NULL, 0, true);
	(void)!port_wire_send(&p->wire); /* its end is noticed in a turn */
}

void
port_stop_all(struct port *p)
{
	struct tributary_instance *i;

	while ((i = LIST_FIRST(&p->instances)) != NULL) {
		(void)!instance_stop(i);
		port_end_instance(p, i);
	}
}

/* ---- Life ---- */

/* The folder tells when a socket appears that does not exist yet. */
static void
watch_folder(struct port *p)
{
	struct sockaddr_un *sun = (struct sockaddr_un *)&p->address.sa;
	char folder[sizeof(sun->sun_path) + 2];
	char *slash;

	if (p->options.connect != NULL || p->address.kind != ADDR_UNIX ||
	    sun->sun_path[0] != '/')
		return;
	snprintf(folder, sizeof(folder), "%s", sun->sun_path);
	slash = strrchr(folder, '/');
	slash[slash == folder] = '\0';
	if ((p->folder_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) < 0)
		return;
	if (inotify_add_watch(p->folder_fd, folder,
	    IN_CREATE | IN_MOVED_TO) < 0) {
		close(p->folder_fd);
		p->folder_fd = -1;
	}
}

static char *
copy_text(const char *s)
{
	return s != NULL ? strdup(s) : NULL;
}

struct port *
port_new(const struct tributary_options *o)
{
	struct port *p;
	char err[512] = "there is no memory";

	if ((p = calloc(1, sizeof(*p))) == NULL)
		return NULL;
	p->endpoint.stop_done = port_stop_done;
	p->endpoint.flush_done = port_flush_done;
	p->endpoint.adopts = true;
	p->options = *o;
	p->folder_fd = p->jumps_fd = -1;
	p->wire.fd = p->wire.in_fd = -1;
	LIST_INIT(&p->instances);
	TAILQ_INIT(&p->flushes);
	STAILQ_INIT(&p->notes);
	STAILQ_INIT(&p->waiters);
	p->options.name = copy_text(o->name);
	p->options.machine_name = copy_text(o->machine_name);
	p->options.address = NULL;
	p->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (p->options.name == NULL || p->wake_fd < 0)
		goto fail;
	if (o->connect == NULL &&
	    !port_dial_choose(&p->address, o->address != NULL ? o->address :
	    addr_default_producer(), err, sizeof(err)))
		goto fail;
	watch_folder(p);
	return p;

fail:
	port_log(p, TRIBUTARY_LOG_ERROR, "Tracing did not start: %s.", err);
	port_free(p);
	return NULL;
}

static void
close_fds(struct port *p)
{
	if (p->wake_fd >= 0)
		close(p->wake_fd);
	if (p->folder_fd >= 0)
		close(p->folder_fd);
	p->wake_fd = p->folder_fd = -1;
	port_clocks_end(p);
}

void
port_free(struct port *p)
{
	if (p == NULL)
		return;
	reset(p);
	close_fds(p);
	free((char *)p->options.name);
	free((char *)p->options.machine_name);
	free(p);
}

void
port_after_fork(struct port *p)
{
	/* Its memory is shared with the parent: forgotten, not written. */
	if (p->wire.fd >= 0)
		close(p->wire.fd);
	if (p->wire.in_fd >= 0)
		close(p->wire.in_fd);
	close_fds(p);
}
