#include "client/web/web_archive.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/web/web_archive_page.h"
#include "client/web/web_archive_trace.h"
#include "transport/base/failure.h"

#define ERROR_BYTES 1024
#define NO_MEMORY   503u

struct queue {
	struct web_archive *archive;
	struct web_job *first, **end;
	size_t n;
	pthread_cond_t some;
	pthread_t thread;
	bool running;
};

struct web_archive {
	const char *folder, *ui;
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
	q->end = &q->first;
	pthread_cond_init(&q->some, NULL);
}

struct web_archive *
web_archive_new(const char *folder, const char *ui, void (*done)(void *arg),
    void *arg, char *err, size_t err_size)
{
	struct web_archive *a = calloc(1, sizeof(*a));

	if (a == NULL) {
		snprintf(err, err_size, "no memory");
		return NULL;
	}
	a->folder = folder;
	a->ui = ui;
	a->done = done;
	a->arg = arg;
	pthread_mutex_init(&a->lock, NULL);
	init_queue(&a->quick, a);
	init_queue(&a->joins, a);
	a->fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (a->fd >= 0)
		return a;
	snprintf(err, err_size, "--archive: cannot open the folder %s: %m",
	    folder);
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
print_page(struct web_job *j)
{
	const struct web_archive_asked asked = { .folder = j->archive->folder,
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
		.fd = j->archive->fd };
	char err[ERROR_BYTES] = "";
	struct web_archive_file file;
	int n;

	if (j->kind == WEB_JOB_PAGE) {
		print_page(j);
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

static void *
run(void *arg)
{
	struct queue *q = arg;
	struct web_archive *a = q->archive;
	struct web_job *j;

	pthread_mutex_lock(&a->lock);
	while (!a->ends) {
		if ((j = q->first) == NULL) {
			pthread_cond_wait(&q->some, &a->lock);
			continue;
		}
		if ((q->first = j->next) == NULL)
			q->end = &q->first;
		q->n--;
		if (!j->abandoned) {
			pthread_mutex_unlock(&a->lock);
			run_job(j);
			pthread_mutex_lock(&a->lock);
		}
		j->done = true;
		if (j->abandoned)
			free_job(j);
		else
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

static void
end_queue(struct queue *q)
{
	struct web_job *j;

	if (q->running)
		pthread_join(q->thread, NULL);
	while ((j = q->first) != NULL) {
		q->first = j->next;
		free_job(j);
	}
	pthread_cond_destroy(&q->some);
}

void
web_archive_free(struct web_archive *a)
{
	if (a == NULL)
		return;
	pthread_mutex_lock(&a->lock);
	a->ends = true;
	pthread_cond_signal(&a->quick.some);
	pthread_cond_signal(&a->joins.some);
	pthread_mutex_unlock(&a->lock);
	end_queue(&a->quick);
	end_queue(&a->joins);
	if (a->fd >= 0)
		close(a->fd);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

/* ---- the thread that speaks HTTP ---- */

struct web_job *
web_archive_ask(struct web_archive *a, enum web_job_kind kind,
    const struct web_query *q)
{
	bool joins = kind == WEB_JOB_TRACE;
	struct queue *to = joins ? &a->joins : &a->quick;
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
		*to->end = j;
		to->end = &j->next;
		to->n++;
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
	if (j->done)
		free_job(j);
	else
		j->abandoned = true;
	pthread_mutex_unlock(&a->lock);
}
