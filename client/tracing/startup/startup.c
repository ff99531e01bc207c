#include "client/tracing/startup/startup.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <tributary/data_source.h>

#include "client/tracing/event/track_event.h"
#include "client/tracing/memory/chunk_memory.h"
#include "client/tracing/source/endpoint.h"
#include "client/tracing/source/registry.h"
#include "client/tracing/startup/chunk_copy.h"
#include "protos/fields.h"
#include "transport/shm/shm.h"
#include "transport/wire/pb_writer.h"

#define MEMORY_KB  1024u
#define TIMEOUT_MS 10000u
#define PAGE_BYTES 4096u

struct startup {
	struct endpoint endpoint; /* first: the instance knows it by this */
	LIST_ENTRY(startup) link; /* under the registry's lock */
	struct tributary_instance *instance;
	struct chunk_memory *memory; /* a reference */
	uint64_t due_ms;
	void (*ended)(void *arg, bool adopted, uint64_t lost);
	void *arg;
};

static LIST_HEAD(, startup) all = LIST_HEAD_INITIALIZER(all);
static atomic_uint n_all;

static uint64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* ---- The end ---- */

/*
 * Ends the recording, which is in no list any more; heir: the instance that has
 * its slot, or NULL.
 */
static void
end(struct startup *s, struct tributary_instance *heir)
{
	uint64_t lost;

	if (s->instance->state != INSTANCE_OVER) {
		(void)!instance_stop(s->instance);
		instance_end_writing(s->instance);
	}
	lost = tributary_instance_dropped(s->instance) +
	    chunk_copy(s->memory, heir);
	if (heir != NULL)
		atomic_fetch_add(&heir->dropped, lost);
	instance_free(s->instance);
	chunk_memory_close(s->memory);
	chunk_memory_unref(s->memory);
	if (s->ended != NULL)
		s->ended(s->arg, heir != NULL, lost);
	free(s);
}

static void
adopted_cb(struct endpoint *e, struct tributary_instance *heir)
{
	struct startup *s = (struct startup *)e;

	registry_lock();
	LIST_REMOVE(s, link);
	n_all--;
	registry_unlock();
	end(s, heir);
}

static struct startup *
take_due(uint64_t now)
{
	struct startup *s;

	registry_lock();
	LIST_FOREACH(s, &all, link)
		if (s->due_ms <= now)
			break;
	if (s != NULL) {
		LIST_REMOVE(s, link);
		n_all--;
		s->instance->source->startup = NULL;
	}
	registry_unlock();
	return s;
}

int
startup_turn(void)
{
	uint64_t now = now_ms(), due = UINT64_MAX;
	struct startup *s;

	/* Most programs have none, and the thread's turns are many. */
	if (n_all == 0)
		return -1;
	while ((s = take_due(now)) != NULL)
		end(s, NULL);
	registry_lock();
	LIST_FOREACH(s, &all, link)
		due = s->due_ms < due ? s->due_ms : due;
	registry_unlock();
	if (due == UINT64_MAX)
		return -1;
	return due - now > INT_MAX ? INT_MAX : (int)(due - now);
}

void
startup_end_all(void)
{
	struct startup *s;

	while ((s = take_due(UINT64_MAX)) != NULL)
		end(s, NULL);
}

void
startup_after_fork(void)
{
	LIST_INIT(&all);
	n_all = 0;
}

/* ---- The beginning ---- */

static void
wake_cb(void *arg)
{
	/* The library's thread looks at the memory when it ends. */
}

static void
note_done(struct endpoint *e, struct tributary_instance *i)
{
	/* A recording has stopped when stop() returns. */
}

static void
note_flushed(struct endpoint *e, struct tributary_instance *i, uint64_t id)
{
	/* Only sessions flush. */
}

/* DataSourceConfig */
static void
encode_config(struct pb_writer *w, const struct tributary_startup_options *o,
    const char *name)
{
	const char *const *c;
	size_t mark;

	pb_put_string(w, DataSourceConfig_name, name);
	if (o->categories != NULL) {
		mark = pb_nest_begin(w, DataSourceConfig_track_event_config);
		for (c = o->categories; *c != NULL; c++)
			pb_put_string(w, TrackEventConfig_enabled_categories,
			    *c);
		pb_put_string(w, TrackEventConfig_disabled_categories, "*");
		pb_nest_end(w, mark);
	}
	pb_put_raw(w, o->config, o->config_len);
}

static struct chunk_memory *
new_memory(uint32_t kb)
{
	size_t size, page;
	struct chunk_memory *m;
	struct shm *shm;

	shm_valid_sizes((size_t)(kb != 0 ? kb : MEMORY_KB) * 1024, PAGE_BYTES,
	    &size, &page);
	if ((shm = shm_new(size, page)) == NULL)
		return NULL;
	if ((m = chunk_memory_new(shm, wake_cb, NULL)) == NULL)
		shm_free(shm);
	return m;
}

static struct startup *
startup_new(const struct tributary_startup_options *o)
{
	struct startup *s;

	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	if ((s->memory = new_memory(o->memory_kb)) == NULL) {
		free(s);
		return NULL;
	}
	s->endpoint.stop_done = note_done;
	s->endpoint.flush_done = note_flushed;
	s->endpoint.adopted = adopted_cb;
	s->due_ms = o->timeout_ms == UINT32_MAX ? UINT64_MAX - 1 :
	    now_ms() + (o->timeout_ms != 0 ? o->timeout_ms : TIMEOUT_MS);
	s->ended = o->ended;
	s->arg = o->arg;
	return s;
}

/* Under the lock: the source has a recording, or a service's session. */
static bool
is_recorded(const struct tributary_source *source)
{
	const struct tributary_instance *i;
	unsigned slot;

	for (slot = 0; slot < TRIBUTARY_INSTANCES_MAX; slot++)
		if ((i = source->instances[slot]) != NULL &&
		    (i->endpoint->adopts || i->endpoint->adopted != NULL))
			return true;
	return false;
}

static struct tributary_instance *
new_instance(struct startup *s, const struct tributary_startup_options *o,
    const char *name)
{
	struct instance_setup setup = { .endpoint = &s->endpoint,
	    .memory = s->memory, .buffer = CHUNK_COPY_BUFFER,
	    .full = TRIBUTARY_FULL_DROP };
	struct tributary_instance *i = NULL;
	struct tributary_source *source;
	struct pb_writer w;

	registry_lock();
	source = registry_find(name, strlen(name));
	if (source != NULL && is_recorded(source))
		source = NULL;
	registry_unlock();
	pb_writer_init(&w);
	encode_config(&w, o, name);
	setup.config = w.data;
	setup.config_len = w.len;
	if (source != NULL && !w.failed)
		i = instance_new(source, &setup);
	pb_writer_done(&w);
	return i;
}

/* Over to the library's thread. */
static void
begin(struct startup *s)
{
	instance_start(s->instance);
	registry_lock();
	LIST_INSERT_HEAD(&all, s, link);
	n_all++;
	s->instance->source->startup = s->instance;
	registry_unlock();
	registry_changed();
}

int
tributary_startup(const struct tributary_startup_options *options)
{
	struct tributary_startup_options o = { .size = sizeof(o) };
	struct startup *s = NULL;
	int saved = errno;

	if (options != NULL)
		memcpy(&o, options, options->size < sizeof(o) ? options->size :
		    sizeof(o));
	if (track_event_init() == 0 && (s = startup_new(&o)) != NULL &&
	    (s->instance = new_instance(s, &o, o.source != NULL ? o.source :
	    "track_event")) != NULL) {
		begin(s);
	} else if (s != NULL) {
		chunk_memory_unref(s->memory);
		free(s);
		s = NULL;
	}
	errno = saved;
	return s != NULL ? 0 : -1;
}
