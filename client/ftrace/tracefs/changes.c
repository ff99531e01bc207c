#include "client/ftrace/tracefs/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/ftrace/tracefs/tracefs.h"

#define FILE_NAME  "tributary-probes.ftrace"
/* Also the unit's: a process that is started by hand finds the same file. */
#define RUN_FOLDER "/run/tributary-probes"
/* Files that a session changes are a few dozen, and one for each event. */
#define CHANGES_MAX 65536u

/* A value that no file has: the path is an instance that was not there. */
static const char instance[] = "(instance)";

struct change {
	char *path;
	char *value; /* before */
};

struct changes {
	struct tracefs *t;    /* borrowed */
	const char *notes;    /* borrowed; NULL: none */
	int notes_errno;      /* of the first note that failed */
	struct change *all;   /* owned, in the order of the changes */
	size_t n, room;
};

int
changes_path(char *path, size_t size)
{
	const char *runtime = getenv("RUNTIME_DIRECTORY");
	const char *of_user = getenv("XDG_RUNTIME_DIR");
	const char *folder = NULL;

	/* systemd may give several folders; the first is ours. */
	if (runtime != NULL && runtime[0] == '/' &&
	    strchr(runtime, ':') == NULL)
		folder = runtime;
	else if ((mkdir(RUN_FOLDER, 0700) == 0 || errno == EEXIST) &&
	    access(RUN_FOLDER, W_OK) == 0)
		folder = RUN_FOLDER;
	else if (of_user != NULL && of_user[0] == '/')
		folder = of_user;
	if (folder == NULL || (size_t)snprintf(path, size, "%s/%s", folder,
	    FILE_NAME) >= size)
		return -1;
	return 0;
}

struct changes *
changes_new(struct tracefs *t, const char *path)
{
	struct changes *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->t = t;
	c->notes = path;
	c->notes_errno = path == NULL ? ENOENT : 0;
	return c;
}

void
changes_free(struct changes *c)
{
	size_t i;

	if (c == NULL)
		return;
	for (i = 0; i < c->n; i++) {
		free(c->all[i].path);
		free(c->all[i].value);
	}
	free(c->all);
	free(c);
}

static struct change *
find(struct changes *c, const char *path)
{
	size_t i;

	for (i = 0; i < c->n; i++) {
		if (strcmp(c->all[i].path, path) == 0)
			return &c->all[i];
	}
	return NULL;
}

static int
add(struct changes *c, const char *path, const char *value)
{
	struct change *larger, new;
	size_t room;

	if (c->n == CHANGES_MAX) {
		errno = ENOSPC;
		return -1;
	}
	if (c->n == c->room) {
		room = c->room == 0 ? 64 : 2 * c->room;
		larger = realloc(c->all, room * sizeof(*larger));
		if (larger == NULL)
			return -1;
		c->all = larger;
		c->room = room;
	}
	new.path = strdup(path);
	new.value = strdup(value);
	if (new.path == NULL || new.value == NULL) {
		free(new.path);
		free(new.value);
		return -1;
	}
	c->all[c->n++] = new;
	return 0;
}

/*
 * A line of the notes.  Recording goes on without them: that the kernel cannot
 * be put back after a kill -9 is told, and no reason to record nothing.
 */
static void
note(struct changes *c, const char *path, const char *value)
{
	char *line = NULL;
	int fd = -1, len;

	if (c->notes == NULL || c->notes_errno != 0)
		return;
	len = asprintf(&line, "%s\t%s\n", path, value);
	if (len < 0)
		line = NULL;
	else
		fd = open(c->notes, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC |
		    O_NOFOLLOW, 0600);
	if (fd < 0 || write(fd, line, (size_t)len) != (ssize_t)len)
		c->notes_errno = errno != 0 ? errno : EIO;
	if (fd >= 0)
		close(fd);
	free(line);
}

int
changes_noted(const struct changes *c)
{
	errno = c->notes_errno;
	return c->notes_errno == 0 ? 0 : -1;
}

int
changes_set(struct changes *c, const char *path, const char *value)
{
	char *before = NULL;
	int rc = -1;

	if (find(c, path) == NULL) {
		if ((before = tracefs_value(c->t, path)) == NULL)
			return -1;
		if (add(c, path, before) < 0)
			goto out;
		note(c, path, before);
	}
	rc = tracefs_write(c->t, path, value);
out:
	free(before);
	return rc;
}

int
changes_make_instance(struct changes *c, const char *path)
{
	if (tracefs_exists(c->t, path))
		return 0;
	if (add(c, path, instance) < 0)
		return -1;
	note(c, path, instance);
	return tracefs_make_instance(c->t, path);
}

static int
undo(struct changes *c, const struct change *change)
{
	if (strcmp(change->value, instance) == 0)
		return tracefs_exists(c->t, change->path) ?
		    tracefs_remove_instance(c->t, change->path) : 0;
	/* The file of an event whose module was unloaded is gone, with it. */
	if (tracefs_write(c->t, change->path, change->value) < 0)
		return errno == ENOENT ? 0 : -1;
	return 0;
}

void
changes_undo(struct changes *c, const char *path)
{
	const struct change *change = find(c, path);

	/* Kept among the changes: a later one is put back again. */
	if (change != NULL && undo(c, change) < 0)
		return;
}

static const char instances[] = "instances/";

/* NULL: each path does. */
static bool
lies_below(const char *path, const char *prefix)
{
	size_t n = prefix != NULL ? strlen(prefix) : 0;

	if (prefix == NULL)
		return true;
	if (n == 0)
		return strncmp(path, instances, sizeof(instances) - 1) != 0;
	/* The instance itself has no slash behind its name. */
	return strncmp(path, prefix, n) == 0 ||
	    (strlen(path) == n - 1 && strncmp(path, prefix, n - 1) == 0);
}

/* Notes of the changes that are left, in place of the old ones. */
static void
note_anew(struct changes *c)
{
	size_t i;

	if (c->notes == NULL)
		return;
	unlink(c->notes);
	for (i = 0; i < c->n; i++)
		note(c, c->all[i].path, c->all[i].value);
}

static unsigned
undo_below(struct changes *c, const char *prefix, char *failed, size_t size)
{
	unsigned n_failed = 0;
	size_t i, kept = 0;

	for (i = c->n; i-- > 0;) {
		if (!lies_below(c->all[i].path, prefix) ||
		    undo(c, &c->all[i]) == 0)
			continue;
		n_failed++;
		snprintf(failed, size, "%s (%s)", c->all[i].path,
		    strerror(errno));
	}
	for (i = 0; i < c->n; i++) {
		if (lies_below(c->all[i].path, prefix)) {
			free(c->all[i].path);
			free(c->all[i].value);
		} else {
			c->all[kept++] = c->all[i];
		}
	}
	c->n = kept;
	note_anew(c);
	return n_failed;
}

unsigned
changes_undo_all(struct changes *c, char *failed, size_t size)
{
	return undo_below(c, NULL, failed, size);
}

unsigned
changes_undo_below(struct changes *c, const char *prefix, char *failed,
    size_t size)
{
	return undo_below(c, prefix, failed, size);
}

/* Notes of a process that was killed: a last line may be cut. */
static void
take_notes(struct changes *c, FILE *f)
{
	char *line = NULL, *tab;
	size_t room = 0;
	ssize_t len;

	while ((len = getline(&line, &room, f)) > 0) {
		if (line[len - 1] != '\n' ||
		    (tab = strchr(line, '\t')) == NULL)
			continue;
		line[len - 1] = '\0';
		*tab = '\0';
		if (line[0] == '/' || strstr(line, "..") != NULL)
			continue;
		if (find(c, line) == NULL && add(c, line, tab + 1) < 0)
			break;
	}
	free(line);
}

int
changes_recover(struct changes *c, char *failed, size_t size)
{
	int fd, n;
	FILE *f;

	failed[0] = '\0';
	if (c->notes == NULL)
		return 0;
	fd = open(c->notes, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	if ((f = fdopen(fd, "r")) == NULL) {
		close(fd);
		return -1;
	}
	take_notes(c, f);
	fclose(f);
	n = (int)c->n;
	return n - (int)changes_undo_all(c, failed, size);
}
