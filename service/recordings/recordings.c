#include "service/recordings/recordings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/recordings/recording.h"
#include "service/recordings/recording_plan.h"
#include "service/settings/settings.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"
#include "transport/wire/pb_writer.h"

struct entry {
	TAILQ_ENTRY(entry) link;
	struct recording *recording;
	bool named; /* by the settings that are being read */
};

struct recordings {
	struct service *service;
	char *path;                /* of the archive; NULL: none yet */
	struct trace_folder archive;
	TAILQ_HEAD(, entry) entries;
};

/* The plans of all recordings of some settings. */
struct plans {
	struct recording_plan *of[SETTINGS_RECORDINGS_MAX];
	size_t n;
};

static void
plans_done(struct plans *p)
{
	while (p->n > 0)
		recording_plan_free(p->of[--p->n]);
}

static int
plans_read(struct plans *p, const struct settings *s, char *err,
    size_t err_size)
{
	for (p->n = 0; p->n < s->n_recordings; p->n++) {
		p->of[p->n] = recording_plan_new(&s->recordings[p->n],
		    s, err, err_size);
		if (p->of[p->n] == NULL) {
			plans_done(p);
			return -1;
		}
	}
	return 0;
}

int
recordings_check(const struct settings *s, char *err, size_t err_size)
{
	struct plans p;

	if (plans_read(&p, s, err, err_size) != 0)
		return -1;
	plans_done(&p);
	return 0;
}

static int
open_archive(struct recordings *all, const char *path, char *err,
    size_t err_size)
{
	int fd;

	if (path == NULL)
		return 0;
	if (all->path != NULL)
		return strcmp(path, all->path) == 0 ? 0 : FAILURE(err,
		    err_size, "archive_dir: %s instead of %s takes a restart "
		    "of the daemon", path, all->path);
	if ((fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
		return FAILURE(err, err_size, "cannot use the archive "
		    "directory %s: %s", path, strerror(errno));
	if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0) {
		snprintf(err, err_size, "cannot create files in the archive "
		    "directory %s: %s", path, strerror(errno));
		close(fd);
		return -1;
	}
	if ((all->path = strdup(path)) == NULL) {
		close(fd);
		return FAILURE(err, err_size, "no memory");
	}
	all->archive = (struct trace_folder){ .path = all->path, .fd = fd };
	return 0;
}

static struct entry *
find(const struct recordings *all, const char *name)
{
	struct entry *e;

	TAILQ_FOREACH(e, &all->entries, link)
		if (strcmp(recording_name(e->recording), name) == 0)
			return e;
	return NULL;
}

static void
drop(struct recordings *all, struct entry *e)
{
	TAILQ_REMOVE(&all->entries, e, link);
	recording_free(e->recording);
	free(e);
}

static void
gone_cb(struct recording *r, void *arg)
{
	struct recordings *all = arg;

	drop(all, find(all, recording_name(r)));
}

/* Takes the plan over.  NULL: no memory. */
static struct entry *
add(struct recordings *all, struct recording_plan *plan)
{
	struct entry *e;

	if ((e = calloc(1, sizeof(*e))) == NULL) {
		recording_plan_free(plan);
		return NULL;
	}
	e->recording = recording_new(all->service, plan, &all->archive,
	    gone_cb, all);
	if (e->recording == NULL) {
		free(e);
		return NULL;
	}
	e->named = true;
	TAILQ_INSERT_TAIL(&all->entries, e, link);
	return e;
}

struct recordings *
recordings_new(struct service *s, char *err, size_t err_size)
{
	struct recordings *all;
	struct plans p = { .n = 0 };
	size_t i;

	if ((all = calloc(1, sizeof(*all))) == NULL) {
		snprintf(err, err_size, "no memory");
		return NULL;
	}
	all->service = s;
	all->archive.fd = -1;
	TAILQ_INIT(&all->entries);
	if (plans_read(&p, s->settings, err, err_size) != 0 ||
	    open_archive(all, s->settings->archive_dir, err, err_size) != 0)
		goto fail;
	for (i = 0; i < p.n; i++) {
		if (add(all, p.of[i]) == NULL) {
			snprintf(err, err_size, "no memory");
			goto fail_taken;
		}
		p.of[i] = NULL;
	}
	s->recordings = all;
	return all;

fail_taken:
	p.of[i] = NULL;
fail:
	plans_done(&p);
	recordings_free(all);
	return NULL;
}

void
recordings_free(struct recordings *all)
{
	struct entry *e;

	if (all == NULL)
		return;
	all->service->recordings = NULL;
	while ((e = TAILQ_FIRST(&all->entries)) != NULL)
		drop(all, e);
	if (all->archive.fd >= 0)
		close(all->archive.fd);
	free(all->path);
	free(all);
}

void
recordings_begin(struct recordings *all)
{
	struct entry *e;

	TAILQ_FOREACH(e, &all->entries, link)
		recording_begin(e->recording);
}

/* ---- other settings ---- */

static void
take(struct recordings *all, struct recording_plan *plan)
{
	struct entry *e = find(all, plan->name);

	if (e != NULL) {
		e->named = true;
		recording_change(e->recording, plan);
	} else if ((e = add(all, plan)) != NULL) {
		recording_begin(e->recording);
	} else {
		log_error("no memory for a recording of the settings");
	}
}

static void
take_all(struct recordings *all, struct plans *p)
{
	struct entry *e, *next;
	size_t i;

	TAILQ_FOREACH(e, &all->entries, link)
		e->named = false;
	for (i = 0; i < p->n; i++)
		take(all, p->of[i]);
	p->n = 0;
	TAILQ_FOREACH_SAFE(e, &all->entries, link, next) {
		if (!e->named)
			recording_remove(e->recording);
	}
}

void
recordings_reload(struct recordings *all)
{
	const char *file = all->service->settings->file;
	char err[SETTINGS_ERROR_SIZE];
	struct settings fresh;
	struct plans p;

	if (file == NULL || settings_init(&fresh) != 0)
		return;
	if (settings_load(&fresh, file, err, sizeof(err)) == 0 &&
	    plans_read(&p, &fresh, err, sizeof(err)) == 0) {
		if (open_archive(all, fresh.archive_dir, err, sizeof(err)) ==
		    0) {
			take_all(all, &p);
			log_info("recordings: the settings were read again");
		} else {
			log_error("recordings stay as they are: %s", err);
		}
		plans_done(&p);
	} else {
		log_error("recordings stay as they are: %s", err);
	}
	settings_done(&fresh);
}

/* ---- orders and questions ---- */

void
recordings_order(struct recordings *all, const struct recording_order *o,
    recording_done_fn done, void *arg)
{
	const struct principal owner = recording_owner();
	char text[RECORDING_TEXT], name[160];
	struct entry *e = NULL;

	if (all != NULL && principal_may(o->who, &owner))
		e = find(all, o->name);
	if (e != NULL) {
		recording_order(e->recording, o->verb, done, arg);
		return;
	}
	/* One answer, whether it is another's or is not there. */
	snprintf(text, sizeof(text), "there is no recording \"%s\", or you may "
	    "not command it: `tributary recordings` lists those that you may",
	    log_escape(name, sizeof(name), o->name, strlen(o->name)));
	done(arg, text);
}

void
recordings_forget(struct recordings *all, void *arg)
{
	struct entry *e;

	if (all == NULL)
		return;
	TAILQ_FOREACH(e, &all->entries, link)
		recording_forget(e->recording, arg);
}

void
recordings_report(const struct recordings *all, const struct principal *who,
    uint32_t field, struct pb_writer *w)
{
	const struct principal owner = recording_owner();
	const struct entry *e;
	size_t mark;

	if (all == NULL || !principal_may(who, &owner))
		return;
	TAILQ_FOREACH(e, &all->entries, link) {
		mark = pb_nest_begin(w, field);
		recording_report(e->recording, w);
		pb_nest_end(w, mark);
	}
}

size_t
recordings_in_state(const struct recordings *all, uint64_t state)
{
	const struct entry *e;
	size_t n = 0;

	if (all == NULL)
		return 0;
	TAILQ_FOREACH(e, &all->entries, link)
		n += recording_state_number(e->recording) == state;
	return n;
}

int
recordings_folder(const struct recordings *all)
{
	return all->archive.fd;
}
