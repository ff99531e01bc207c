/*
 * Contents of tracefs other than text: values, numbers of processors, names of
 * events.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ftrace/tracefs/tracefs.h"
#include "transport/base/glob.h"

/* Moves the text to the front of its memory. */
static void
keep_only(char *text, const char *at, size_t len)
{
	memmove(text, at, len);
	text[len] = '\0';
}

static bool
is_filter(const char *path)
{
	const char *name = strrchr(path, '/');

	return name != NULL && strcmp(name, "/filter") == 0;
}

char *
tracefs_value(const struct tracefs *t, const char *path)
{
	char *text, *open, *end;
	size_t len;

	if ((text = tracefs_read(t, path, &len)) == NULL)
		return NULL;
	while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == ' '))
		text[--len] = '\0';
	/* Brackets and parentheses of a filter are part of it. */
	if (!is_filter(path)) {
		if ((open = strchr(text, '[')) != NULL &&
		    (end = strchr(open, ']')) != NULL) {
			keep_only(text, open + 1, (size_t)(end - open - 1));
			return text;
		}
		if ((end = strstr(text, " (")) != NULL)
			*end = '\0';
	}
	/* An event's filter; "0" is how it is taken away. */
	if (strcmp(text, "none") == 0)
		strcpy(text, "0");
	while ((end = strchr(text, '\n')) != NULL)
		*end = ' ';
	return text;
}

bool
tracefs_offers(const struct tracefs *t, const char *path, const char *word)
{
	char *text = tracefs_read(t, path, NULL), *at, *next;
	bool found = false;

	if (text == NULL)
		return false;
	for (at = strtok_r(text, " []\n", &next); at != NULL && !found;
	    at = strtok_r(NULL, " []\n", &next))
		found = strcmp(at, word) == 0;
	free(text);
	return found;
}

static DIR *
open_folder(const struct tracefs *t, const char *path)
{
	int fd = tracefs_open_file(t, path, O_RDONLY | O_DIRECTORY);
	DIR *d;

	if (fd < 0)
		return NULL;
	if ((d = fdopendir(fd)) == NULL)
		close(fd);
	return d;
}

unsigned
tracefs_cpus(const struct tracefs *t, const char *prefix)
{
	char path[TRACEFS_PATH_MAX];
	unsigned cpu, most = 0;
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "%sper_cpu", prefix);
	if ((d = open_folder(t, path)) == NULL)
		return 0;
	while ((e = readdir(d)) != NULL) {
		if (sscanf(e->d_name, "cpu%u", &cpu) == 1 &&
		    cpu < TRACEFS_CPUS_MAX && cpu >= most)
			most = cpu + 1;
	}
	closedir(d);
	return most;
}

struct walk {
	const struct tracefs *t;
	const char *prefix;
	const char *name; /* a pattern */
	void (*fn)(void *arg, const char *group, const char *name);
	void *arg;
	size_t n;
};

static void
try_event(struct walk *w, const char *group, const char *name)
{
	char path[TRACEFS_PATH_MAX];

	if (name[0] == '.' || !glob_match(w->name, name))
		return;
	if ((size_t)snprintf(path, sizeof(path), "%sevents/%s/%s/format",
	    w->prefix, group, name) >= sizeof(path) ||
	    !tracefs_exists(w->t, path))
		return;
	w->n++;
	w->fn(w->arg, group, name);
}

static void
try_group(struct walk *w, const char *group)
{
	char path[TRACEFS_PATH_MAX];
	struct dirent *e;
	DIR *d;

	if (!glob_is_pattern(w->name)) {
		try_event(w, group, w->name);
		return;
	}
	if ((size_t)snprintf(path, sizeof(path), "%sevents/%s", w->prefix,
	    group) >= sizeof(path) || (d = open_folder(w->t, path)) == NULL)
		return;
	while ((e = readdir(d)) != NULL)
		try_event(w, group, e->d_name);
	closedir(d);
}

size_t
tracefs_each_event(const struct tracefs *t, const char *prefix,
    const char *group, const char *name,
    void (*fn)(void *arg, const char *group, const char *name), void *arg)
{
	struct walk w = { t, prefix, name, fn, arg, 0 };
	char path[TRACEFS_PATH_MAX];
	struct dirent *e;
	DIR *d;

	if (!glob_is_pattern(group)) {
		try_group(&w, group);
		return w.n;
	}
	snprintf(path, sizeof(path), "%sevents", prefix);
	if ((d = open_folder(t, path)) == NULL)
		return 0;
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] != '.' && glob_match(group, e->d_name))
			try_group(&w, e->d_name);
	}
	closedir(d);
	return w.n;
}
