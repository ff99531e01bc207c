#include "client/web/web_archive.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/archive/postgres_url.h"
#include "client/web/web_archive_page.h"
#include "client/web/web_archive_trace.h"
#include "transport/base/failure.h"
#include "transport/loop/loop.h"

#define ERROR_BYTES 1024
/* For one job to find in the catalogue what it is about. */
#define FIND_MS     10000u
#define NO_MEMORY   503u

struct queue {
	struct web_archive *archive;
	TAILQ_HEAD(, web_job) waiting;
	size_t n;
	struct web_job *runs; /* NULL: none does */
	pthread_cond_t some;
	pthread_t thread;
	bool running;
};

struct web_archive {
	const char *folder, *catalog, *ui;
	char *name; /* owned */
	int fd; /* of the folder */
	void (*done)(void *arg);
	void *arg;
	pthread_mutex_t lock; /* of all below, and of the jobs' flags */
	struct queue quick, joins;
	size_t joins_alive;
	bool ends;
};

static void
init_queue(struct queue *q, struct web_archive *a)
{
	q->archive = a;
	TAILQ_INIT(&q->waiting);
	pthread_cond_init(&q->some, NULL);
}

/* A shared catalogue is opened by each job: its server may come later. */
static int
open_place(struct web_archive *a, char *err, size_t err_size)
{
	char name[POSTGRES_NAME_MAX];

	if (a->catalog != NULL) {
		if (postgres_url_name(a->catalog, name, err, err_size) < 0)
			return -1;
		a->name = strdup(name);
	} else {
		a->fd = open(a->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (a->fd < 0)
			return FAILURE(err, err_size, "--archive: cannot open "
			    "the folder %s: %m", a->folder);
		a->name = strdup(a->folder);
	}
	return a->name != NULL ? 0 : FAILURE(err, err_size, "no memory");
}

struct web_archive *
web_archive_new(const struct web_archive_setup *setup, void (*done)(void *arg),
    void *arg, char *err, size_t err_size)
{
	struct web_archive *a = calloc(1, sizeof(*a));

	if (a == NULL) {
		snprintf(err, err_size, "no memory");
		return NULL;
	}
	a->folder = setup->folder;
	a->catalog = setup->catalog;
	a->ui = setup->ui;
	a->fd = -1;
	a->done = done;
	a->arg = arg;
	pthread_mutex_init(&a->lock, NULL);
	init_queue(&a->quick, a);
	init_queue(&a->joins, a);
	if (open_place(a, err, err_size) == 0)
		return a;
	web_archive_free(a);
	return NULL;
}

/* ---- jobs ---- */

static void
free_job(struct web_job *j)
{
	if (j->kind == WEB_JOB_TRACE)
		j->archive->joins_alive--;
	if (j->fd >= 0)
		close(j->fd);
	free(j->body);
	free(j);
}

static void
print_page(struct web_job *j, const struct web_archive_place *place)
{
	const struct web_archive_asked asked = { .place = place,
		.ui = j->archive->ui, .search = &j->search, .page = j->page };
	FILE *out = open_memstream(&j->body, &j->len);

	j->status = NO_MEMORY;
	if (out == NULL)
		return;
	j->status = web_archive_page_print(out, &asked);
	if (fclose(out) == 0)
		return;
	free(j->body);
	j->body = NULL;
	j->len = 0;
	j->status = NO_MEMORY;
}

static void
run_job(struct web_job *j)
{
	const struct web_archive_place place = { .folder = j->archive->folder,
		.catalog = j->archive->catalog, .name = j->archive->name,
		.fd = j->archive->fd, .stop = &j->stop,
		.until_ms = loop_now_ms() + FIND_MS };
	char err[ERROR_BYTES] = "";
	struct web_archive_file file;
	int n;

	if (j->kind == WEB_JOB_PAGE) {
		print_page(j, &place);
		return;
	}
	j->status = j->kind == WEB_JOB_SEGMENT ?
	    web_archive_open(&file, &place, &j->search, err, sizeof(err)) :
	    web_archive_join(&file, &place, &j->search, err, sizeof(err));
	if (j->status == 200) {
		j->fd = file.fd;
		j->len = file.bytes;
		memcpy(j->name, file.name, sizeof(j->name));
		return;
	}
	n = asprintf(&j->body, "%s\n", err);
	if (n < 0)
		j->body = NULL;
	j->len = n < 0 ? 0 : (size_t)n;
}

static void
leave_queue(struct queue *q, struct web_job *j)
{
	TAILQ_REMOVE(&q->waiting, j, link);
	q->n--;
	j->waits = false;
}

static void *
run(void *arg)
{
	struct queue *q = arg;
	struct web_archive *a = q->archive;
	struct web_job *j;

	pthread_mutex_lock(&a->lock);
	while (!a->ends) {
		if ((j = TAILQ_FIRST(&q->waiting)) == NULL) {
			pthread_cond_wait(&q->some, &a->lock);
			continue;
		}
		leave_queue(q, j);
		q->runs = j;
		pthread_mutex_unlock(&a->lock);
		run_job(j);
		pthread_mutex_lock(&a->lock);
		q->runs = NULL;
		j->done = true;
		if (j->abandoned)
			free_job(j);
		else if (!a->ends)
			a->done(a->arg);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

int
web_archive_start(struct web_archive *a)
{
	a->quick.running = pthread_create(&a->quick.thread, NULL, run,
	    &a->quick) == 0;
	a->joins.running = a->quick.running && pthread_create(
	    &a->joins.thread, NULL, run, &a->joins) == 0;
	return a->joins.running ? 0 : -1;
}

/* Has the lock. */
static void
tell_to_end(struct queue *q)
{
	if (q->runs != NULL)
		atomic_store(&q->runs->stop, true);
	pthread_cond_signal(&q->some);
}

static void
join_thread(struct queue *q)
{
	if (q->running)
		pthread_join(q->thread, NULL);
	q->running = false;
}

void
web_archive_stop(struct web_archive *a)
{
	pthread_mutex_lock(&a->lock);
	a->ends = true;
	tell_to_end(&a->quick);
	tell_to_end(&a->joins);
	pthread_mutex_unlock(&a->lock);
	join_thread(&a->quick);
	join_thread(&a->joins);
}

void
web_archive_free(struct web_archive *a)
{
	if (a == NULL)
		return;
	web_archive_stop(a);
	pthread_cond_destroy(&a->quick.some);
	pthread_cond_destroy(&a->joins.some);
	if (a->fd >= 0)
		close(a->fd);
	pthread_mutex_destroy(&a->lock);
	free(a->name);
	free(a);
}

/* ---- the thread that speaks HTTP ---- */

static struct queue *
queue_of(struct web_archive *a, enum web_job_kind kind)
{
	return kind == WEB_JOB_TRACE ? &a->joins : &a->quick;
}

struct web_job *
web_archive_ask(struct web_archive *a, enum web_job_kind kind,
    const struct web_query *q)
{
	bool joins = kind == WEB_JOB_TRACE;
	struct queue *to = queue_of(a, kind);
	struct web_job *j = calloc(1, sizeof(*j));
	bool full;

	if (j == NULL)
		return NULL;
	j->archive = a;
	j->fd = -1;
	j->kind = kind;
	j->search = q->archive;
	j->page = q->page;
	pthread_mutex_lock(&a->lock);
	full = joins ? a->joins_alive == WEB_ARCHIVE_JOINS :
	    to->n == WEB_ARCHIVE_QUEUE;
	if (!full) {
		a->joins_alive += joins ? 1 : 0;
		TAILQ_INSERT_TAIL(&to->waiting, j, link);
		to->n++;
		j->waits = true;
		pthread_cond_signal(&to->some);
	}
	pthread_mutex_unlock(&a->lock);
	if (!full)
		return j;
	free(j);
	return NULL;
}

bool
web_job_is_done(struct web_job *j)
{
	bool done;

	pthread_mutex_lock(&j->archive->lock);
	done = j->done;
	pthread_mutex_unlock(&j->archive->lock);
	return done;
}

void
web_job_drop(struct web_job *j)
{
	struct web_archive *a;

	if (j == NULL)
		return;
	a = j->archive;
	pthread_mutex_lock(&a->lock);
	if (j->waits)
		leave_queue(queue_of(a, j->kind), j);
	if (j == a->quick.runs || j == a->joins.runs) {
		j->abandoned = true;
		atomic_store(&j->stop, true);
	} else {
		free_job(j);
	}
	pthread_mutex_unlock(&a->lock);
}
