/*
 * core: the library's one thread, what starts and ends it, and the requests
 * that other threads make of it.
 *
 * The thread may be the program's, whose event loop calls tributary_turn(): it
 * does then, without waiting, what run() does on the library's own.
 */
#include "client/tracing/core/core.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <tributary/tributary.h>
#include <unistd.h>

#include "client/tracing/core/outer_loop.h"
#include "client/tracing/event/process_names.h"
#include "client/tracing/event/track_event.h"
#include "client/tracing/memory/own_memory.h"
#include "client/tracing/port/port.h"
#include "client/tracing/source/registry.h"
#include "client/tracing/startup/startup.h"

#define STOP_MS 1000u

enum request_kind {
	REQUEST_FLUSH,
	REQUEST_STOP,
	REQUEST_PART, /* from the service, while the thread goes on */
	REQUEST_TRIGGER,
	REQUEST_CONNECTED,
};

enum request_state {
	REQUEST_WAITS,
	REQUEST_UNDER_WAY, /* the thread has it */
	REQUEST_DONE,
	REQUEST_FAILED,
	REQUEST_LEFT, /* its caller has given up: the thread frees it */
};

struct request {
	enum request_kind kind;
	enum request_state state;
	bool detached; /* no caller waits for it */
	char *text; /* owned */
	struct request *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static pthread_cond_t changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_t thread;
/* TURNED: by the program's thread, in tributary_turn(). */
static enum { IDLE, RUNNING, ENDING, TURNED } state;
static struct outer_loop outer = { .fd = -1, .timer_fd = -1 }; /* if TURNED */
static bool turning; /* TURNED: inside of turn(), on the program's thread */
static struct port *port; /* the thread's; NULL: no service was asked for */
static struct port *next_port; /* the thread takes it */
static int wake_fd = -1; /* while the thread is there */
static const struct core_guest *guest;
static unsigned guest_uses; /* core_enter() without core_leave() */
static struct request *requests;
static bool sources_changed, connected;
/* As tributary_start() was called: also for a child of fork(). */
static struct tributary_options options;
static char *own_name, *own_address, *own_machine;

/* ---- The thread ---- */

static void
finish_request(struct request *r, bool ok)
{
	pthread_mutex_lock(&lock);
	if (r->state == REQUEST_LEFT || r->detached) {
		free(r->text);
		free(r);
	} else {
		r->state = ok ? REQUEST_DONE : REQUEST_FAILED;
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&lock);
}

static void
flushed_cb(void *arg, bool ok)
{
	finish_request(arg, ok);
}

static void
set_port(struct port *p)
{
	pthread_mutex_lock(&lock);
	port = p;
	pthread_mutex_unlock(&lock);
}

static void
serve(struct request *r)
{
	if (port == NULL) {
		finish_request(r, r->kind != REQUEST_FLUSH);
		return;
	}
	switch (r->kind) {
	case REQUEST_PART:
		port_free(port);
		set_port(NULL);
		finish_request(r, true);
		break;
	case REQUEST_STOP:
		port_stop_all(port);
		port_flush(port, flushed_cb, r);
		break;
	case REQUEST_FLUSH:
		port_flush(port, flushed_cb, r);
		break;
	case REQUEST_TRIGGER:
		port_trigger(port, r->text);
		finish_request(r, true);
		break;
	case REQUEST_CONNECTED:
		break;
	}
}

static struct request *
next_request(void)
{
	struct request *r;

	pthread_mutex_lock(&lock);
	if ((r = requests) != NULL) {
		requests = r->next;
		r->state = r->state == REQUEST_LEFT ? REQUEST_LEFT :
		    REQUEST_UNDER_WAY;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

static bool
take_sources_changed(void)
{
	bool was;

	pthread_mutex_lock(&lock);
	was = sources_changed;
	sources_changed = false;
	pthread_mutex_unlock(&lock);
	return was;
}

static void
note_connected(void)
{
	pthread_mutex_lock(&lock);
	if (connected != (port != NULL && port_is_connected(port))) {
		connected = !connected;
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&lock);
}

static bool
is_ending(void)
{
	bool ending;

	pthread_mutex_lock(&lock);
	ending = state == ENDING;
	pthread_mutex_unlock(&lock);
	return ending;
}

static void
take_port(void)
{
	pthread_mutex_lock(&lock);
	if (next_port != NULL)
		port = next_port;
	next_port = NULL;
	pthread_mutex_unlock(&lock);
}

/* Under the lock, or on the thread. */
static bool
is_running(void)
{
	return state == RUNNING || state == TURNED;
}

/* -1 of either: for ever. */
static int
sooner(int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

/* fds[0] is the thread's own, the others are the port's. */
static void
wait_for_work(struct pollfd *fds, int due_ms)
{
	uint64_t n;

	fds[0] = (struct pollfd){ .fd = wake_fd, .events = POLLIN };
	if (port != NULL)
		due_ms = sooner(due_ms, port_poll(port, fds + 1));
	(void)poll(fds, port != NULL ? 1 + PORT_FDS : 1, due_ms);
	if (fds[0].revents != 0)
		(void)!read(wake_fd, &n, sizeof(n));
	if (port != NULL)
		port_run(port, fds + 1);
}

/* Waits for most_ms at most, -1: for ever, and does what there is to do. */
static void
turn(int most_ms)
{
	struct pollfd fds[1 + PORT_FDS];
	const struct core_guest *g;
	struct request *r;

	take_port();
	most_ms = sooner(most_ms, startup_turn());
	g = __atomic_load_n(&guest, __ATOMIC_ACQUIRE);
	wait_for_work(fds, sooner(most_ms, g != NULL ? g->turn() : -1));
	if (take_sources_changed() && port != NULL)
		port_sources_changed(port);
	while ((r = next_request()) != NULL)
		serve(r);
	note_connected();
}

static void *
run(void *arg)
{
	(void)prctl(PR_SET_NAME, "tributary");
	while (!is_ending())
		turn(-1);
	return NULL;
}

/* ---- The program's loop ---- */

/* Has tributary_fd() tell of the next turn. */
static void
watch_outside(void)
{
	struct pollfd fds[1 + PORT_FDS];
	int due_ms = -1;
	size_t n = 1;

	fds[0] = (struct pollfd){ .fd = wake_fd, .events = POLLIN };
	if (port != NULL) {
		due_ms = port_poll(port, fds + 1);
		n += PORT_FDS;
	}
	due_ms = sooner(due_ms, startup_turn());
	outer_loop_watch(&outer, fds, n, due_ms);
}

/* false: from inside of a callback. */
static bool
turn_outside(int most_ms)
{
	if (turning)
		return false;
	turning = true;
	turn(most_ms);
	watch_outside();
	turning = false;
	return true;
}

void
tributary_turn(void)
{
	int saved = errno;

	if (core_is_thread() && state == TURNED)
		(void)turn_outside(0);
	errno = saved;
}

int
tributary_fd(void)
{
	return state == TURNED ? outer.fd : -1;
}

/* Under the lock: the calling thread is the library's from now on. */
static int
start_outside(void)
{
	if ((wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
		return -1;
	if (outer_loop_open(&outer) != 0) {
		close(wake_fd);
		wake_fd = -1;
		return -1;
	}
	thread = pthread_self();
	state = TURNED;
	watch_outside();
	return 0;
}

void
core_wake(void)
{
	uint64_t one = 1;

	(void)!write(wake_fd, &one, sizeof(one));
}

/* ---- Requests ---- */

void
core_deadline(struct timespec *at, unsigned ms)
{
	clock_gettime(CLOCK_MONOTONIC, at);
	at->tv_sec += ms / 1000;
	at->tv_nsec += (long)(ms % 1000) * 1000000;
	if (at->tv_nsec >= 1000000000) {
		at->tv_nsec -= 1000000000;
		at->tv_sec++;
	}
}

/* Under the lock.  In the order of the calls. */
static void
add_request(struct request *r)
{
	struct request **at;

	for (at = &requests; *at != NULL; at = &(*at)->next)
		;
	*at = r;
	core_wake();
}

static uint64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/*
 * Under the lock, which is let go of meanwhile: the program's thread turns as
 * long as wanted() says, up to the time.
 */
static void
turn_while(bool (*wanted)(const void *arg), const void *arg, unsigned ms)
{
	uint64_t now = now_ms(), until = now + ms;

	while (wanted(arg) && now < until) {
		pthread_mutex_unlock(&lock);
		(void)turn_outside((int)(until - now < 1000 ? until - now :
		    1000));
		pthread_mutex_lock(&lock);
		now = now_ms();
	}
}

static bool
is_waiting(const void *arg)
{
	const struct request *r = arg;

	return r->state == REQUEST_WAITS || r->state == REQUEST_UNDER_WAY;
}

/* Under the lock; true: done within the time. */
static bool
wait_for(struct request *r, unsigned ms)
{
	struct timespec at;
	bool ok;

	core_deadline(&at, ms);
	if (state == TURNED && core_is_thread())
		turn_while(is_waiting, r, ms);
	else
		while (is_waiting(r) && pthread_cond_timedwait(&changed,
		    &lock, &at) != ETIMEDOUT)
			;
	if (is_waiting(r)) {
		r->state = REQUEST_LEFT;
		return false;
	}
	ok = r->state == REQUEST_DONE;
	free(r);
	return ok;
}

bool
core_is_thread(void)
{
	return pthread_equal(thread, pthread_self()) != 0;
}

/* Under the lock: callbacks may not wait for what comes after them. */
static bool
may_wait(void)
{
	if (state == TURNED && core_is_thread())
		return !turning;
	return is_running() && !core_is_thread();
}

/* Asks the thread, and waits. */
static bool
ask(enum request_kind kind, unsigned ms)
{
	struct request *r;
	bool ok = false;

	if ((r = calloc(1, sizeof(*r))) == NULL)
		return false;
	r->kind = kind;
	pthread_mutex_lock(&lock);
	if (may_wait()) {
		add_request(r);
		ok = wait_for(r, ms);
	} else {
		free(r);
	}
	pthread_mutex_unlock(&lock);
	return ok;
}

bool
tributary_flush(unsigned timeout_ms)
{
	int saved = errno;
	bool ok = ask(REQUEST_FLUSH, timeout_ms);

	errno = saved;
	return ok;
}

static bool
is_unconnected(const void *arg)
{
	return !connected;
}

bool
tributary_wait_connected(unsigned timeout_ms)
{
	struct timespec at;
	int saved = errno;
	bool ok;

	core_deadline(&at, timeout_ms);
	pthread_mutex_lock(&lock);
	if (state == TURNED && core_is_thread() && !turning)
		turn_while(is_unconnected, NULL, timeout_ms);
	else
		while (is_running() && !connected && !core_is_thread() &&
		    pthread_cond_timedwait(&changed, &lock, &at) != ETIMEDOUT)
			;
	ok = connected;
	pthread_mutex_unlock(&lock);
	errno = saved;
	return ok;
}

void
tributary_trigger(const char *name)
{
	struct request *r;
	int saved = errno;

	if ((r = calloc(1, sizeof(*r))) == NULL)
		return;
	r->kind = REQUEST_TRIGGER;
	r->detached = true;
	r->text = strdup(name);
	pthread_mutex_lock(&lock);
	if (is_running() && r->text != NULL) {
		add_request(r);
		r = NULL;
	}
	pthread_mutex_unlock(&lock);
	if (r != NULL)
		free(r->text);
	free(r);
	errno = saved;
}

static void
sources_changed_cb(void)
{
	pthread_mutex_lock(&lock);
	sources_changed = true;
	if (is_running())
		core_wake();
	pthread_mutex_unlock(&lock);
}

/* ---- Start and end ---- */

static void
close_wake(void)
{
	if (wake_fd >= 0)
		close(wake_fd);
	wake_fd = -1;
}

/* Under the lock.  All signals are the program's. */
static int
start_thread(void)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int rc;

	if ((wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
		return -1;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	rc = pthread_create(&thread, &attr, run, NULL);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc != 0) {
		close_wake();
		return -1;
	}
	state = RUNNING;
	return 0;
}

/* Under the lock: a port, for the thread that runs or for one that it starts. */
static int
start_port(void)
{
	if (port != NULL || next_port != NULL)
		return 0;
	if ((next_port = port_new(&options)) == NULL)
		return -1;
	if (state == IDLE && (options.loop == TRIBUTARY_LOOP_PROGRAM ?
	    start_outside() : start_thread()) != 0) {
		port_free(next_port);
		next_port = NULL;
		return -1;
	}
	core_wake();
	return 0;
}

static void
restart_cb(void)
{
	int saved = errno;

	/* Another thread of the child may have been first. */
	registry_forget_restart();
	track_event_forget_restart();
	pthread_mutex_lock(&lock);
	(void)!start_port();
	pthread_mutex_unlock(&lock);
	errno = saved;
}

static void
before_fork(void)
{
	pthread_mutex_lock(&lock);
	if (guest != NULL)
		guest->before_fork();
	registry_lock();
	own_before_fork();
}

static void
after_fork_in_parent(void)
{
	own_after_fork(false);
	registry_unlock();
	if (guest != NULL)
		guest->after_fork(false);
	pthread_mutex_unlock(&lock);
}

static void
init_condition(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &attr);
	pthread_condattr_destroy(&attr);
}

static void
after_fork_in_child(void)
{
	bool restart = state != TURNED && (port != NULL || next_port != NULL) &&
	    options.children == TRIBUTARY_CHILDREN_TRACE;

	own_after_fork(true);
	if (port != NULL)
		port_after_fork(port);
	if (next_port != NULL)
		port_after_fork(next_port);
	port = next_port = NULL;
	close_wake();
	outer_loop_close(&outer);
	turning = false;
	if (guest != NULL)
		guest->after_fork(true);
	startup_after_fork();
	guest_uses = 0;
	state = IDLE;
	requests = NULL;
	connected = false;
	pthread_mutex_init(&lock, NULL);
	init_condition();
	registry_after_fork(restart);
	track_event_after_fork(restart);
}

static void
init_once(void)
{
	static const struct registry_hooks hooks = { sources_changed_cb,
		restart_cb };

	init_condition();
	registry_init();
	registry_set_hooks(&hooks);
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static bool
copy_text(char **to, const char *from)
{
	free(*to);
	*to = from != NULL ? strdup(from) : NULL;
	return from == NULL || *to != NULL;
}

/* Under the lock. */
static bool
keep_options(const struct tributary_options *o)
{
	char name[PROCESS_NAME_MAX];

	memset(&options, 0, sizeof(options));
	if (o != NULL)
		memcpy(&options, o, o->size < sizeof(options) ? o->size :
		    sizeof(options));
	process_name(name);
	if (!copy_text(&own_name, options.name != NULL ? options.name :
	    name) || !copy_text(&own_address, options.address) ||
	    !copy_text(&own_machine, options.machine_name))
		return false;
	options.name = own_name;
	options.address = own_address;
	options.machine_name = own_machine;
	return true;
}

/* Under the lock.  A session inside of the program has started a thread. */
static bool
has_its_loop(void)
{
	if (options.loop != TRIBUTARY_LOOP_PROGRAM || state == IDLE)
		return true;
	if (options.log != NULL)
		options.log(options.arg, TRIBUTARY_LOG_ERROR,
		    "Tracing did not start: the library has a thread.");
	return false;
}

int
tributary_start(const struct tributary_options *o)
{
	int rc, saved = errno;

	/* Not of TRIBUTARY_OPTIONS: all that it asks for would be left out. */
	if (o != NULL && o->size == 0)
		return -1;
	(void)pthread_once(&once, init_once);
	rc = track_event_init();
	pthread_mutex_lock(&lock);
	if (rc == 0 && port == NULL && next_port == NULL)
		rc = keep_options(o) && has_its_loop() ? start_port() : -1;
	pthread_mutex_unlock(&lock);
	errno = saved;
	return rc;
}

/* Under the lock: callers that still wait hear that nothing comes. */
static void
fail_requests(void)
{
	struct request *r;

	while ((r = requests) != NULL) {
		requests = r->next;
		if (r->detached || r->state == REQUEST_LEFT) {
			free(r->text);
			free(r);
		} else {
			r->state = REQUEST_FAILED;
		}
	}
	pthread_cond_broadcast(&changed);
}

/* Under the lock, which is let go of meanwhile. */
static void
end_thread(void)
{
	bool outside = state == TURNED;

	state = ENDING;
	core_wake();
	pthread_mutex_unlock(&lock);
	if (!outside)
		pthread_join(thread, NULL);
	port_free(port);
	pthread_mutex_lock(&lock);
	port_free(next_port);
	port = next_port = NULL;
	close_wake();
	outer_loop_close(&outer);
	state = IDLE;
	connected = false;
	fail_requests();
}

/* The program's thread, which may not join itself, or free what it uses. */
static bool
may_stop(void)
{
	if (state == TURNED)
		return core_is_thread() && !turning;
	/* The number of a thread that has ended may be another one's. */
	return state == IDLE || !core_is_thread();
}

void
tributary_stop(unsigned timeout_ms)
{
	int saved = errno;

	if (!may_stop())
		return;
	(void)ask(REQUEST_STOP, timeout_ms != 0 ? timeout_ms : STOP_MS);
	pthread_mutex_lock(&lock);
	if (guest_uses > 0) {
		pthread_mutex_unlock(&lock);
		(void)ask(REQUEST_PART, STOP_MS);
	} else {
		if (is_running())
			end_thread();
		pthread_mutex_unlock(&lock);
	}
	startup_end_all();
	errno = saved;
}

int
core_enter(const struct core_guest *g)
{
	int rc;

	(void)pthread_once(&once, init_once);
	rc = track_event_init();
	pthread_mutex_lock(&lock);
	__atomic_store_n(&guest, g, __ATOMIC_RELEASE);
	/* Another thread may be ending it. */
	while (rc == 0 && state == ENDING)
		pthread_cond_wait(&changed, &lock);
	if (rc == 0 && state == TURNED)
		rc = -1; /* it would wait for what this thread is to do */
	if (rc == 0 && state == IDLE)
		rc = start_thread();
	if (rc == 0)
		guest_uses++;
	pthread_mutex_unlock(&lock);
	return rc;
}

void
core_leave(void)
{
	/* The thread stays: a next session will come, or tributary_stop(). */
	pthread_mutex_lock(&lock);
	if (guest_uses > 0)
		guest_uses--;
	pthread_mutex_unlock(&lock);
}

const char *
tributary_version(void)
{
	return TRIBUTARY_VERSION;
}
