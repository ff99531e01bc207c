#include "client/archiver/folder_watch.h"

#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/base/hash_map.h"
#include "transport/loop/loop.h"

/*
 * A file has its name when it was written in place or renamed; IN_CREATE counts
 * for folders alone, as a new file is empty yet.
 */
#define EVENTS (IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | \
	IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

#define EVENT_BYTES (64u * 1024u)

/* Deeper ones are not looked into: a path has no room for many more. */
#define DEPTH_MAX 64

struct folder {
	struct hash_link link; /* by wd */
	int wd;
	char path[];           /* below the root; "" for the root */
};

struct folder_watch {
	struct folder_watch_setup setup; /* root is owned */
	int fd;
	struct event ev;
	bool has_event;
	struct hash_map folders;
	size_t unwatched;
};

static struct folder *
find(const struct folder_watch *w, int wd)
{
	struct folder *f;

	HASH_MAP_FOREACH_OF(f, &w->folders, hash_number((uint64_t)wd), link) {
		if (f->wd == wd)
			return f;
	}
	return NULL;
}

static void
forget(struct folder_watch *w, struct folder *f)
{
	hash_map_remove(&w->folders, &f->link);
	free(f);
}

static void
forget_all(struct folder_watch *w)
{
	struct hash_cursor c;
	struct folder *f;

	HASH_MAP_FOREACH(f, &w->folders, &c, link) {
		forget(w, f);
	}
}

/* "path/name", and the name alone in the root.  NULL: no memory. */
static char *
join(const char *path, const char *name)
{
	char *whole;

	if (asprintf(&whole, "%s%s%s", path, path[0] != '\0' ? "/" : "",
	    name) < 0)
		return NULL;
	return whole;
}

static int
remember(struct folder_watch *w, int wd, const char *path)
{
	size_t len = strlen(path) + 1;
	struct folder *f;

	/* A folder that was moved keeps its descriptor. */
	if ((f = find(w, wd)) != NULL)
		forget(w, f);
	if ((f = malloc(sizeof(*f) + len)) == NULL)
		return -1;
	f->wd = wd;
	memcpy(f->path, path, len);
	hash_map_put(&w->folders, &f->link, hash_number((uint64_t)wd));
	return 0;
}

/* Watches the folder itself, before its contents are read. */
static int
watch_one(struct folder_watch *w, const char *path)
{
	char *whole = join(w->setup.root, path);
	int wd = -1, e;

	if (whole == NULL)
		return -1;
	wd = inotify_add_watch(w->fd, whole, EVENTS |
	    (path[0] != '\0' ? IN_DONT_FOLLOW : 0));
	e = errno;
	free(whole);
	if (wd >= 0)
		return remember(w, wd, path);
	/* A folder that is gone, or has become a file, is no loss. */
	if (path[0] != '\0' && (e == ENOENT || e == ENOTDIR || e == ELOOP))
		return 0;
	errno = e;
	return -1;
}

static bool
is_folder(DIR *d, const struct dirent *e)
{
	struct stat st;

	if (e->d_name[0] == '.')
		return false;
	if (e->d_type != DT_UNKNOWN)
		return e->d_type == DT_DIR;
	return fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISDIR(st.st_mode);
}

static void watch_tree(struct folder_watch *w, const char *path, int depth);

static void
watch_below(struct folder_watch *w, const char *path, int depth)
{
	char *whole = join(w->setup.root, path), *below;
	struct dirent *e;
	DIR *d;

	d = whole != NULL ? opendir(whole) : NULL;
	free(whole);
	if (d == NULL)
		return;
	while ((e = readdir(d)) != NULL) {
		if (!is_folder(d, e))
			continue;
		if ((below = join(path, e->d_name)) != NULL)
			watch_tree(w, below, depth + 1);
		free(below);
	}
	closedir(d);
}

static void
watch_tree(struct folder_watch *w, const char *path, int depth)
{
	if (depth > DEPTH_MAX || watch_one(w, path) != 0)
		w->unwatched++;
	if (depth <= DEPTH_MAX)
		watch_below(w, path, depth);
}

void
folder_watch_again(struct folder_watch *w)
{
	w->unwatched = 0;
	watch_tree(w, "", 0);
}

/* ---- events ---- */

/*
 * Paths of watched folders below one that moved are no longer right, and it may
 * have left the tree: all is looked through again.
 */
static void
start_over(struct folder_watch *w)
{
	struct hash_cursor c;
	struct folder *f;

	HASH_MAP_FOREACH(f, &w->folders, &c, link) {
		(void)inotify_rm_watch(w->fd, f->wd);
		forget(w, f);
	}
	folder_watch_again(w);
	w->setup.changed("", true, w->setup.arg);
}

static void
take_folder(struct folder_watch *w, const struct inotify_event *e,
    const char *path)
{
	if (e->mask & (IN_MOVED_FROM | IN_MOVED_TO)) {
		start_over(w);
		return;
	}
	if (e->mask & IN_CREATE)
		watch_tree(w, path, 1);
	w->setup.changed(path, true, w->setup.arg);
}

static void
take_event(struct folder_watch *w, const struct inotify_event *e)
{
	struct folder *f;
	char *path;

	if (e->mask & IN_Q_OVERFLOW) {
		start_over(w);
		return;
	}
	if ((f = find(w, e->wd)) == NULL)
		return;
	if (e->mask & IN_IGNORED) {
		forget(w, f);
		return;
	}
	if (e->len == 0) {
		if (f->path[0] == '\0')
			w->setup.changed("", true, w->setup.arg);
		return;
	}
	if (e->name[0] == '.' || (path = join(f->path, e->name)) == NULL)
		return;
	if (e->mask & IN_ISDIR)
		take_folder(w, e, path);
	else if (!(e->mask & IN_CREATE) && w->setup.is_meant(path))
		w->setup.changed(path, false, w->setup.arg);
	free(path);
}

static void
read_cb(evutil_socket_t fd, short what, void *arg)
{
	char events[EVENT_BYTES]
	    __attribute__((aligned(__alignof__(struct inotify_event))));
	const struct inotify_event *e;
	struct folder_watch *w = arg;
	ssize_t n, at;

	if ((n = read(fd, events, sizeof(events))) <= 0)
		return;
	for (at = 0; at < n; at += (ssize_t)(sizeof(*e) + e->len)) {
		e = (const struct inotify_event *)(events + at);
		take_event(w, e);
	}
}

/* ---- life ---- */

struct folder_watch *
folder_watch_new(const struct folder_watch_setup *setup, char *err,
    size_t err_size)
{
	struct folder_watch *w;

	snprintf(err, err_size, "no memory");
	if ((w = calloc(1, sizeof(*w))) == NULL)
		return NULL;
	w->setup = *setup;
	w->fd = -1;
	if ((w->setup.root = strdup(setup->root)) == NULL)
		goto fail;
	w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->fd < 0 || watch_one(w, "") != 0) {
		snprintf(err, err_size, "cannot watch the folder %s: %s",
		    setup->root, errno == ENOSPC ? "the system's limit of "
		    "watches (fs.inotify.max_user_watches) is reached" :
		    errno == EMFILE ? "its user's limit of watchers "
		    "(fs.inotify.max_user_instances), or of open files, is "
		    "reached" :
		    strerror(errno));
		goto fail;
	}
	if (event_assign(&w->ev, loop_base(setup->loop), w->fd,
	    EV_READ | EV_PERSIST, read_cb, w) != 0 ||
	    event_add(&w->ev, NULL) != 0)
		goto fail;
	w->has_event = true;
	watch_below(w, "", 0);
	return w;

fail:
	folder_watch_free(w);
	return NULL;
}

void
folder_watch_free(struct folder_watch *w)
{
	if (w == NULL)
		return;
	if (w->has_event)
		event_del(&w->ev);
	forget_all(w);
	hash_map_done(&w->folders);
	if (w->fd >= 0)
		close(w->fd);
	free((char *)w->setup.root);
	free(w);
}

size_t
folder_watch_unwatched(const struct folder_watch *w)
{
	return w->unwatched;
}
