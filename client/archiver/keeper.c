#include "client/archiver/keeper.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/archive/catalog.h"
#include "client/archiver/keeper_internal.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

/* Time between two looks at the disk's room, and at others' changes. */
#define CHECK_MS 1000u

uint64_t
keeper_wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void
keeper_fail(struct keeper *k, const char *fmt, ...)
{
	char text[sizeof(k->view.failure)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_warn("%s", text);
	pthread_mutex_lock(&k->lock);
	k->view.failures++;
	memcpy(k->view.failure, text, sizeof(text));
	pthread_mutex_unlock(&k->lock);
}

const char *
keeper_cause_text(size_t cause)
{
	static const char *const texts[KEEPER_CAUSES] = {
		[2 * RETENTION_RECORDING] = "recording size",
		[2 * RETENTION_RECORDING + 1] = "recording age",
		[2 * RETENTION_MACHINE] = "machine size",
		[2 * RETENTION_MACHINE + 1] = "machine age",
		[2 * RETENTION_ALL] = "size",
		[2 * RETENTION_ALL + 1] = "age",
		[2 * RETENTION_DISK] = "disk",
		[2 * RETENTION_DISK + 1] = "disk",
	};

	return texts[cause];
}

/* ---- the thread ---- */

static void
take_settings(struct keeper *k)
{
	struct archiver_settings *s;

	pthread_mutex_lock(&k->lock);
	s = k->next_settings;
	k->next_settings = NULL;
	pthread_mutex_unlock(&k->lock);
	if (s == NULL)
		return;
	archiver_settings_done(&k->settings);
	k->settings = *s;
	free(s);
	k->changed = true;
	k->not_before_ms = 0;
	k->resume_ms = 0;
	k->n_stuck = 0;
	k->n_told = 0;
}

static void
look(struct keeper *k, const struct work *w)
{
	if (w->is_folder)
		keeper_look_folder(k, w->path);
	else
		keeper_look_file(k, w->path);
}

static void
rescan(struct keeper *k)
{
	keeper_recover(k);
	k->n_stuck = 0;
	keeper_look_folder(k, "");
	k->rescan_at_ms = loop_now_ms() + k->settings.rescan_ms;
}

static void *
run(void *arg)
{
	struct keeper *k = arg;
	struct work w;

	rescan(k);
	while (!work_queue_is_stopped(k->queue)) {
		keeper_retain(k);
		if (work_queue_take(k->queue, CHECK_MS, &w)) {
			look(k, &w);
			free(w.path);
		}
		take_settings(k);
		if (loop_now_ms() >= k->rescan_at_ms)
			rescan(k);
	}
	return NULL;
}

/* ---- other threads ---- */

struct keeper *
keeper_new(int fd, struct archiver_settings *settings, char *err,
    size_t err_size)
{
	struct keeper *k;

	snprintf(err, err_size, "no memory");
	if ((k = calloc(1, sizeof(*k))) == NULL)
		return NULL;
	k->fd = fd;
	k->changed = true;
	k->due_ms = UINT64_MAX;
	(void)pthread_mutex_init(&k->lock, NULL);
	if ((k->queue = work_queue_new()) == NULL)
		goto fail;
	k->catalog = catalog_open(settings->folder, CATALOG_WRITE, err,
	    err_size);
	if (k->catalog == NULL)
		goto fail;
	/* Cannot fail from here on: the settings are ours. */
	k->settings = *settings;
	memset(settings, 0, sizeof(*settings));
	return k;

fail:
	keeper_free(k);
	return NULL;
}

void
keeper_free(struct keeper *k)
{
	if (k == NULL)
		return;
	if (k->has_thread) {
		work_queue_stop(k->queue);
		pthread_join(k->thread, NULL);
	}
	catalog_close(k->catalog);
	work_queue_free(k->queue);
	archiver_settings_done(&k->settings);
	if (k->next_settings != NULL)
		archiver_settings_done(k->next_settings);
	free(k->next_settings);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

int
keeper_start(struct keeper *k)
{
	sigset_t all, old;

	/* Signals are the loop's. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	errno = pthread_create(&k->thread, NULL, run, k);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	k->has_thread = errno == 0;
	return k->has_thread ? 0 : -1;
}

void
keeper_look(struct keeper *k, const char *path, bool is_folder)
{
	work_queue_add(k->queue, path, is_folder);
}

void
keeper_set(struct keeper *k, struct archiver_settings *settings)
{
	struct archiver_settings *s, *old;

	if ((s = malloc(sizeof(*s))) == NULL)
		return;
	*s = *settings;
	memset(settings, 0, sizeof(*settings));
	pthread_mutex_lock(&k->lock);
	old = k->next_settings;
	k->next_settings = s;
	pthread_mutex_unlock(&k->lock);
	if (old != NULL)
		archiver_settings_done(old);
	free(old);
	work_queue_wake(k->queue);
}

size_t
keeper_waiting(struct keeper *k)
{
	return work_queue_length(k->queue);
}

void
keeper_view(struct keeper *k, struct keeper_view *out)
{
	pthread_mutex_lock(&k->lock);
	*out = k->view;
	pthread_mutex_unlock(&k->lock);
}
