#include "client/tracing/source/registry.h"

#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/tracing/memory/own_memory.h"
#include "client/tracing/source/registry_internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tributary_source *sources[TRIBUTARY_SOURCES_MAX];
static unsigned n_sources;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_membarrier;

void
registry_lock(void)
{
	own_enter();
	pthread_mutex_lock(&lock);
}

void
registry_unlock(void)
{
	pthread_mutex_unlock(&lock);
	own_leave();
}

static long
membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

static void
init_once(void)
{
	sequence_init_threads();
	has_membarrier =
	    membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

/*
 * When the library is loaded: a key of a thread's own that is among the first of
 * a program is set without malloc().
 */
__attribute__((__constructor__)) void
registry_init(void)
{
	(void)pthread_once(&once, init_once);
}

void
registry_see_each_other(void)
{
	if (!has_membarrier ||
	    membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0)
		atomic_thread_fence(memory_order_seq_cst);
}

/* ---- Sources ---- */

struct tributary_source *
registry_source(unsigned index)
{
	return index < n_sources ? sources[index] : NULL;
}

struct tributary_source *
registry_find(const char *name, size_t len)
{
	unsigned i;

	for (i = 0; i < n_sources; i++)
		if (strlen(sources[i]->name) == len &&
		    memcmp(sources[i]->name, name, len) == 0)
			return sources[i];
	return NULL;
}

static struct tributary_source *
source_new(const struct tributary_source_options *o,
    const struct tributary_source_ops *ops)
{
	struct tributary_source *s;

	if ((s = calloc(1, sizeof(*s))) == NULL ||
	    (s->name = strdup(o->name)) == NULL)
		goto fail;
	if (o->descriptor_len > 0) {
		if ((s->descriptor = malloc(o->descriptor_len)) == NULL)
			goto fail;
		memcpy(s->descriptor, o->descriptor, o->descriptor_len);
		s->descriptor_len = o->descriptor_len;
	}
	s->ops = ops;
	s->arg = o->arg;
	s->full = o->full;
	s->no_flush = o->no_flush;
	s->no_abort = o->no_abort;
	return s;

fail:
	if (s != NULL)
		free(s->name);
	free(s);
	return NULL;
}

struct tributary_source *
registry_add(const struct tributary_source_options *o,
    const struct tributary_source_ops *ops)
{
	struct tributary_source *s = NULL;

	registry_init();
	registry_lock();
	if (n_sources < TRIBUTARY_SOURCES_MAX &&
	    registry_find(o->name, strlen(o->name)) == NULL &&
	    (s = source_new(o, ops)) != NULL) {
		s->index = n_sources;
		sources[n_sources++] = s;
	}
	registry_unlock();
	return s;
}

void
registry_describe(struct tributary_source *s, uint8_t *data, size_t len)
{
	registry_lock();
	free(s->descriptor);
	s->descriptor = data;
	s->descriptor_len = len;
	registry_unlock();
	registry_changed();
}

static struct registry_hooks hooks;

void
registry_set_hooks(const struct registry_hooks *of)
{
	hooks = *of;
}

void
registry_changed(void)
{
	if (hooks.sources_changed != NULL)
		hooks.sources_changed();
}

void
registry_restart(void)
{
	if (hooks.restart != NULL)
		hooks.restart();
}

void
registry_begin_anew(struct tributary_source *s)
{
	unsigned slot;

	registry_lock();
	for (slot = 0; s != NULL && slot < TRIBUTARY_INSTANCES_MAX; slot++)
		if (s->instances[slot] != NULL)
			atomic_fetch_add(&s->instances[slot]->generation, 1);
	registry_unlock();
}

/* ---- fork() ---- */

void
registry_after_fork(bool restart)
{
	unsigned i;

	pthread_mutex_init(&lock, NULL);
	sequence_after_fork();
	instance_after_fork();
	for (i = 0; i < n_sources; i++) {
		memset(sources[i]->instances, 0, sizeof(sources[i]->instances));
		sources[i]->startup = NULL;
		atomic_store(&sources[i]->enabled,
		    restart ? REGISTRY_RESTART : 0);
	}
	has_membarrier =
	    membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
	own_leave(); /* as registry_unlock() */
}

void
registry_forget_restart(void)
{
	unsigned i;

	registry_lock();
	for (i = 0; i < n_sources; i++)
		atomic_fetch_and(&sources[i]->enabled, ~REGISTRY_RESTART);
	registry_unlock();
}
