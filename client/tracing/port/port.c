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
#include "transport/clock/system_info.h"
#include "transport/clock/this_machine.h"
#include "transport/shm/shm.h"
#include "transport/wire/ipc_frame.h"
#include "transport/wire/pb_reader.h"

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
		[PORT_INIT_MACHINE] = "TributaryInitMachine",
		[PORT_SYNC_CLOCK] = "TributarySyncClock",
	},
};
_Static_assert(PORT_METHODS <= PORT_WIRE_METHODS_MAX, "room for all");

static uint64_t
now_ms(void)
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

static void
tell_cb(void *arg)
{
	struct port *p = arg;

	port_commit(p, false);
	(void)!port_wire_send(&p->wire);
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
	p->n_registered = 0;
	p->state = PORT_WAITING;
	tell_waiters(p, false);
}

void
port_disconnect(struct port *p, const char *why)
{
	bool was_ready = p->state == PORT_READY;

	if (p->state == PORT_WAITING)
		return;
	reset(p);
	p->due_ms = now_ms() + retry_pause(p);
	if (was_ready || p->failures == 1)
		port_log(p, TRIBUTARY_LOG_WARNING, "Not connected to %s: %s.",
		    p->options.connect != NULL ? "the service" :
		    p->address.text, why);
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
	int fd;

	if (p->options.connect != NULL) {
		if ((fd = p->options.connect(p->options.arg)) >= 0 &&
		    !set_nonblocking(fd)) {
			close(fd);
			fd = -1;
		}
		return fd;
	}
	return port_dial(&p->address);
}

static void
begin_connect(struct port *p)
{
	int fd = dial(p);

	if (fd < 0) {
		p->due_ms = now_ms() + retry_pause(p);
		if (p->failures == 1)
			port_log(p, TRIBUTARY_LOG_INFO, "Waiting for the "
			    "service at %s: %s.", p->address.text,
			    strerror(errno));
		return;
	}
	port_wire_init(&p->wire, fd, &producer_port);
	p->state = PORT_CONNECTING;
	p->due_ms = now_ms() + PORT_ANSWER_MS;
}

/* Identity of this process, which the service cannot ask its kernel for. */
static void
put_identity(struct port *p, struct pb_writer *w)
{
	char clocks[THIS_MACHINE_CLOCKS_MAX], name[256];
	size_t mark = ipc_frame_begin(w, 0, IPC_SET_PEER_IDENTITY);

	this_machine_clocks(clocks, sizeof(clocks));
	this_machine_name(name, sizeof(name));
	pb_put_int(w, SetPeerIdentity_pid, getpid());
	pb_put_int(w, SetPeerIdentity_uid, (int64_t)getuid());
	if (clocks[0] != '\0') {
		pb_put_string(w, SetPeerIdentity_machine_id_hint, clocks);
		pb_put_string(w, SetPeerIdentity_tributary_clocks, clocks);
	}
	pb_put_string(w, SetPeerIdentity_machine_name,
	    p->options.machine_name != NULL ? p->options.machine_name : name);
	ipc_frame_end(w, mark);
}

static void
connected(struct port *p)
{
	struct pb_writer own;
	int error;

	if ((error = port_dial_error(p->wire.fd)) != 0) {
		port_disconnect(p, strerror(error));
		return;
	}
	p->is_unix = port_dial_is_unix(p->wire.fd);
	pb_writer_init(&own);
	if (!p->is_unix)
		put_identity(p, &own);
	port_wire_bind(&p->wire, own.len > 0 && !own.failed ? &own : NULL);
	pb_writer_done(&own);
	p->state = PORT_BINDING;
	p->due_ms = now_ms() + PORT_ANSWER_MS;
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
	p->provided = p->is_unix;
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
introduce_machine(struct port *p)
{
	struct pb_writer w;
	char name[256];

	if (!port_wire_offers(&p->wire, PORT_INIT_MACHINE))
		return;
	this_machine_name(name, sizeof(name));
	pb_writer_init(&w);
	system_info_introduce(&w, p->options.machine_name != NULL ?
	    p->options.machine_name : name);
	if (!w.failed)
		port_wire_call(&p->wire, PORT_INIT_MACHINE, w.data, w.len,
		    true);
	pb_writer_done(&w);
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
	p->failures = 0;
	introduce_machine(p);
	port_sources_changed(p);
	port_log(p, TRIBUTARY_LOG_INFO, "Connected to %s.",
	    p->options.connect != NULL ? "the service" : p->address.text);
}

/* ---- Sources ---- */

static void
put_source(struct pb_writer *w, const struct tributary_source *s)
{
	size_t mark;

	mark = pb_nest_begin(w,
	    RegisterDataSourceRequest_data_source_descriptor);
	pb_put_string(w, DataSourceDescriptor_name, s->name);
	pb_put_uint(w, DataSourceDescriptor_id, s->index + 1);
	pb_put_uint(w, DataSourceDescriptor_will_notify_on_stop, 1);
	pb_put_uint(w, DataSourceDescriptor_will_notify_on_start, 1);
	pb_put_uint(w, DataSourceDescriptor_handles_incremental_state_clear,
	    1);
	if (s->no_flush)
		pb_put_uint(w, DataSourceDescriptor_no_flush, 1);
	pb_put_raw(w, s->descriptor, s->descriptor_len);
	pb_nest_end(w, mark);
}

void
port_sources_changed(struct port *p)
{
	struct tributary_source *s;
	struct pb_writer w;
	unsigned i;

	if (p->state != PORT_READY)
		return;
	pb_writer_init(&w);
	registry_lock();
	for (i = 0; (s = registry_source(i)) != NULL; i++) {
		put_source(&w, s);
		port_call(p, i < p->n_registered ? PORT_UPDATE_SOURCE :
		    PORT_REGISTER_SOURCE, &w);
	}
	p->n_registered = i;
	registry_unlock();
	pb_writer_done(&w);
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
	default:
		break;
	}
}

static void
receive(struct port *p)
{
	struct port_event e;

	if (!port_wire_receive(&p->wire)) {
		port_disconnect(p, "the service closed the connection");
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
	uint64_t now = now_ms();

	fds[0] = (struct pollfd){ .fd = p->wake_fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = p->wire.fd, .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = p->state == PORT_WAITING ?
	    p->folder_fd : -1, .events = POLLIN };
	if (p->state == PORT_CONNECTING || port_wire_queued(&p->wire) > 0)
		fds[1].events |= POLLOUT;
	if (p->state == PORT_READY)
		return -1;
	if (p->due_ms <= now)
		return 0;
	return p->due_ms - now > INT_MAX ? INT_MAX : (int)(p->due_ms - now);
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
	if (p->state == PORT_WAITING)
		begin_connect(p);
	else
		port_disconnect(p, "the service did not answer");
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
	if (p->state != PORT_READY && p->due_ms <= now_ms())
		wait_is_over(p);
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
	return p->state == PORT_READY;
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
	p->options = *o;
	p->folder_fd = -1;
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
