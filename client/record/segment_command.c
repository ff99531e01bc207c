#include "client/record/segment_command.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "client/record/live_line.h"
#include "transport/base/human_numbers.h"
#include "transport/process/child.h"
#include "transport/segment/segment_writer.h"

#define BACKLOG 100000u
#define PATIENCE_MS 600000u
/* A command that was told to take long is looked after again so much later. */
#define ASK_AGAIN_MS 3600000u
/* Bytes of a command's last words that are told when it fails. */
#define REASON_MAX 300

#define OWN_PREFIX "TRIBUTARY_SEGMENT_"
#define N_OWN_VARIABLES 6u

struct waiting {
	TAILQ_ENTRY(waiting) of_command;
	char *path; /* below the folder */
	char *machine;
	uint64_t bytes;
	uint32_t number;
	bool last;
};

struct segment_command {
	struct segment_command_setup with;
	TAILQ_HEAD(, waiting) waiting; /* while a child runs, it is the first's */
	unsigned n_waiting;
	bool behind; /* that segments get no command was told */
	struct child *child;
	int output;  /* of the child; -1: none */
};

struct segment_command *
segment_command_new(const struct segment_command_setup *setup)
{
	struct segment_command *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->with = *setup;
	if (c->with.backlog == 0)
		c->with.backlog = BACKLOG;
	if (c->with.patience_ms == 0)
		c->with.patience_ms = PATIENCE_MS;
	c->output = -1;
	TAILQ_INIT(&c->waiting);
	return c;
}

static void
free_waiting(struct waiting *w)
{
	free(w->path);
	free(w->machine);
	free(w);
}

static void
forget_first(struct segment_command *c)
{
	struct waiting *w = TAILQ_FIRST(&c->waiting);

	TAILQ_REMOVE(&c->waiting, w, of_command);
	c->n_waiting--;
	free_waiting(w);
}

static void
end_child(struct segment_command *c)
{
	child_free(c->child);
	c->child = NULL;
	if (c->output >= 0)
		close(c->output);
	c->output = -1;
}

void
segment_command_free(struct segment_command *c)
{
	if (c == NULL)
		return;
	end_child(c);
	while (!TAILQ_EMPTY(&c->waiting))
		forget_first(c);
	free(c);
}

/* ---- one command ---- */

/* The path as the command's $1: no flag, whatever the folder's name. */
static char *
argument(const struct segment_command *c, const char *path)
{
	const char *folder = c->with.folder;
	char *whole;

	return asprintf(&whole, "%s%s/%s", folder[0] == '-' ? "./" : "",
	    folder, path) < 0 ? NULL : whole;
}

static bool
is_own(const char *variable)
{
	return strncmp(variable, OWN_PREFIX, strlen(OWN_PREFIX)) == 0;
}

/*
 * Our environment, with what there is to say of a segment in place of what a
 * recording around us may have said.  Free it and *text.
 */
static char **
environment(const struct segment_command *c, const struct waiting *w,
    const char *path, char **text)
{
	size_t n = 0, i, own;
	char **all;

	while (environ[n] != NULL)
		n++;
	all = calloc(n + N_OWN_VARIABLES + 1, sizeof(*all));
	if (all == NULL || asprintf(text, OWN_PREFIX "PATH=%s%c"
	    OWN_PREFIX "RECORDING=%s%c" OWN_PREFIX "MACHINE=%s%c"
	    OWN_PREFIX "NUMBER=%u%c" OWN_PREFIX "BYTES=%llu%c"
	    OWN_PREFIX "LAST=%d", path, 0, c->with.recording, 0, w->machine, 0,
	    (unsigned)w->number, 0, (unsigned long long)w->bytes, 0,
	    w->last) < 0) {
		free(all);
		return NULL;
	}
	all[0] = *text;
	for (own = 1; own < N_OWN_VARIABLES; own++)
		all[own] = all[own - 1] + strlen(all[own - 1]) + 1;
	for (i = 0; i < n; i++)
		if (!is_own(environ[i]))
			all[own++] = environ[i];
	return all;
}

/*
 * The command's output goes where its errors go, which are kept for messages;
 * it has no input.
 */
static struct child *
start(struct segment_command *c, const struct waiting *w, char *err,
    size_t err_size)
{
	char shell[] = "/bin/sh", dash_c[] = "-c", self[] = "tributary";
	struct child_setup setup = { .n_fds = 0 };
	char *script = NULL, *text = NULL, **env = NULL;
	char *path = argument(c, w->path);
	struct child *child = NULL;

	snprintf(err, err_size, "out of memory");
	if (path == NULL || (env = environment(c, w, path, &text)) == NULL)
		goto done;
	if (asprintf(&script, "exec >&2 </dev/null\n%s",
	    c->with.command) < 0) {
		script = NULL;
		goto done;
	}
	setup.environment = env;
	child = child_new_with(c->with.loop, (char *[]){ shell, dash_c, script,
	    self, path, NULL }, &setup, &c->output, err, err_size);

done:
	free(script);
	free(env);
	free(text);
	free(path);
	return child;
}

/* The last line of text: where most programs say why. */
static const char *
last_line(const char *text, size_t *len)
{
	size_t end = strlen(text), begin;

	while (end > 0 && text[end - 1] == '\n')
		end--;
	for (begin = end; begin > 0 && text[begin - 1] != '\n'; begin--)
		;
	*len = end - begin < REASON_MAX ? end - begin : REASON_MAX;
	return text + begin;
}

static void
tell_failure(struct segment_command *c, const struct waiting *w)
{
	int status = child_status(c->child);
	const char *why;
	size_t len;

	if (status == 0)
		return;
	why = last_line(child_stderr(c->child), &len);
	record_live_say(c->with.live, "the command of --on-segment failed for "
	    "%s/%s (status %d)%s%.*s", c->with.folder, w->path, status,
	    len > 0 ? ": " : "", (int)len, why);
}

/* ---- one after the other ---- */

static void run_next(struct segment_command *c);

static void
ended_cb(void *arg)
{
	struct segment_command *c = arg;
	struct waiting *w = TAILQ_FIRST(&c->waiting);
	unsigned others = c->n_waiting - 1;

	if (child_status(c->child) < 0) {
		record_live_say(c->with.live, "the command of --on-segment "
		    "still runs for %s/%s; %u other segment%s wait%s",
		    c->with.folder, w->path, others, human_s(others),
		    others == 1 ? "s" : "");
		child_when_ended(c->child, ASK_AGAIN_MS, ended_cb, c);
		return;
	}
	tell_failure(c, w);
	end_child(c);
	forget_first(c);
	run_next(c);
	if (c->n_waiting == 0)
		c->with.idle(c->with.arg);
}

/* Told once, until the command has caught up. */
static void
skip(struct segment_command *c, const char *path, const char *why)
{
	if (!c->behind)
		record_live_say(c->with.live, "the command of --on-segment is "
		    "behind: it is not run for %s/%s, %s, nor for others like "
		    "it", c->with.folder, path, why);
	c->behind = true;
}

static void
run_next(struct segment_command *c)
{
	struct waiting *w;
	char err[256];

	while (c->child == NULL && (w = TAILQ_FIRST(&c->waiting)) != NULL) {
		if (faccessat(c->with.folder_fd, w->path, F_OK,
		    AT_SYMLINK_NOFOLLOW) != 0) {
			skip(c, w->path, "which was removed before");
		} else if ((c->child = start(c, w, err, sizeof(err))) != NULL) {
			child_when_ended(c->child, c->with.patience_ms,
			    ended_cb, c);
			return;
		} else {
			record_live_say(c->with.live, "the command of "
			    "--on-segment cannot be run for %s/%s: %s",
			    c->with.folder, w->path, err);
		}
		forget_first(c);
	}
	if (c->n_waiting == 0)
		c->behind = false;
}

void
segment_command_add(struct segment_command *c, const struct segment_written *of)
{
	struct waiting *w;

	if (c->n_waiting >= c->with.backlog) {
		skip(c, of->path, "as too many wait");
		return;
	}
	if ((w = calloc(1, sizeof(*w))) == NULL ||
	    (w->path = strdup(of->path)) == NULL ||
	    (w->machine = strdup(of->machine_name)) == NULL) {
		record_live_say(c->with.live, "out of memory: the command of "
		    "--on-segment is not run for %s/%s", c->with.folder,
		    of->path);
		if (w != NULL)
			free_waiting(w);
		return;
	}
	w->bytes = of->bytes;
	w->number = of->number;
	w->last = of->last;
	TAILQ_INSERT_TAIL(&c->waiting, w, of_command);
	c->n_waiting++;
	run_next(c);
}

const char *
segment_command_path(const struct segment_command *c)
{
	return c->child != NULL ? TAILQ_FIRST(&c->waiting)->path : NULL;
}

unsigned
segment_command_left(const struct segment_command *c)
{
	return c->n_waiting;
}

void
segment_command_give_up(struct segment_command *c)
{
	const struct waiting *w = TAILQ_FIRST(&c->waiting);
	unsigned others = c->n_waiting - 1;

	if (c->n_waiting == 0)
		return;
	record_live_say(c->with.live, "the command of --on-segment is ended "
	    "before its end for %s/%s; %u other segment%s had none",
	    c->with.folder, w->path, others, human_s(others));
	end_child(c);
	while (!TAILQ_EMPTY(&c->waiting))
		forget_first(c);
}
