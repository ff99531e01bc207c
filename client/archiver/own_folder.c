#include "client/archiver/own_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "transport/base/failure.h"
#include "transport/connect/listener.h"
#include "transport/loop/loop.h"
#include "transport/socket/peer.h"

#define LOCK_FILE   ".archiver"
#define SOCKET_FILE ".archiver.socket"

/* An archiver that works answers within a turn of its loop. */
#define ANSWER_S 5

struct own_folder {
	int fd;
	int lock;
	struct listener *listener; /* NULL: not serving */
	own_folder_answer_fn answer;
	void *arg;
};

/* ---- the lock ---- */

static int
lock_folder(struct own_folder *f, const char *path, char *err,
    size_t err_size)
{
	char pid[24] = "?";
	ssize_t n;

	f->lock = openat(f->fd, LOCK_FILE,
	    O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (f->lock < 0)
		return FAILURE(err, err_size, "cannot make files in the "
		    "archive %s: %s", path, strerror(errno));
	if (flock(f->lock, LOCK_EX | LOCK_NB) != 0) {
		n = pread(f->lock, pid, sizeof(pid) - 1, 0);
		if (n > 0)
			pid[strcspn(pid, "\n")] = '\0';
		return FAILURE(err, err_size, "an archiver has the archive %s "
		    "already (process %s): tributary-archiver --status shows "
		    "it; end that one first", path, pid);
	}
	/* The number is for people: nothing depends on it. */
	if (ftruncate(f->lock, 0) != 0 ||
	    dprintf(f->lock, "%d\n", (int)getpid()) < 0)
		errno = 0;
	return 0;
}

static int
open_folder(const char *path, char *err, size_t err_size)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	return FAILURE(err, err_size, "cannot open the archive %s: %s%s", path,
	    strerror(errno), errno == ENOENT ? "; make the folder, or name "
	    "the one that segments are written to" : "");
}

struct own_folder *
own_folder_open(const char *path, char *err, size_t err_size)
{
	struct own_folder *f;

	if ((f = calloc(1, sizeof(*f))) == NULL) {
		snprintf(err, err_size, "no memory");
		return NULL;
	}
	f->lock = -1;
	if ((f->fd = open_folder(path, err, err_size)) >= 0 &&
	    lock_folder(f, path, err, err_size) == 0)
		return f;
	own_folder_close(f);
	return NULL;
}

void
own_folder_close(struct own_folder *f)
{
	if (f == NULL)
		return;
	/* Removes the file of the socket through f->fd. */
	listener_free(f->listener);
	if (f->lock >= 0)
		close(f->lock);
	if (f->fd >= 0)
		close(f->fd);
	free(f);
}

int
own_folder_fd(const struct own_folder *f)
{
	return f->fd;
}

/* ---- the socket ---- */

/* The folder's own path may be too long for a socket. */
static void
socket_path(char out[64], int fd)
{
	snprintf(out, 64, "/proc/self/fd/%d/" SOCKET_FILE, fd);
}

static void
accept_cb(struct listener *l, int fd, void *arg)
{
	uint8_t answer[OWN_FOLDER_ANSWER_MAX];
	struct own_folder *f = arg;
	struct peer p;
	size_t n;

	peer_from_socket(&p, fd);
	if (p.auth == PEER_UNIX && (p.uid == 0 || p.uid == geteuid())) {
		n = f->answer(f->arg, answer);
		(void)!send(fd, answer, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	close(fd);
}

int
own_folder_serve(struct own_folder *f, struct loop *loop,
    own_folder_answer_fn fn, void *arg, char *err, size_t err_size)
{
	char path[64];
	struct addr a;
	mode_t old;

	f->answer = fn;
	f->arg = arg;
	socket_path(path, f->fd);
	if (addr_parse(&a, path, err, err_size) != 0)
		return -1;
	old = umask(0177);
	f->listener = listener_new(loop, &(struct listener_setup){
	    .addr = &a, .fn = accept_cb, .arg = f }, err, err_size);
	umask(old);
	return f->listener != NULL ? 0 : -1;
}

static int
connect_to(int folder)
{
	struct timeval patience = { .tv_sec = ANSWER_S };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char path[64];
	int fd;

	socket_path(path, folder);
	memcpy(un.sun_path, path, sizeof(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
	    sizeof(patience)) == 0 &&
	    connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0))
		return fd;
	close(fd);
	return -1;
}

/* The length; -1: see errno. */
static long
read_all(int fd, uint8_t *buf)
{
	size_t n = 0;
	ssize_t got;

	while ((got = read(fd, buf + n, OWN_FOLDER_ANSWER_MAX - n)) > 0)
		n += (size_t)got;
	return got < 0 ? -1 : (long)n;
}

long
own_folder_ask(const char *path, uint8_t *buf, char *err, size_t err_size)
{
	int folder, fd, e;
	long n = -1;

	if ((folder = open_folder(path, err, err_size)) < 0)
		return -1;
	if ((fd = connect_to(folder)) >= 0)
		n = read_all(fd, buf);
	e = errno;
	if (fd >= 0)
		close(fd);
	close(folder);
	if (n > 0)
		return n;
	if (fd >= 0 && n == 0)
		return FAILURE(err, err_size, "the archiver of %s is another "
		    "user's: ask as that user, or as root", path);
	if (e == ENOENT || e == ECONNREFUSED)
		return FAILURE(err, err_size, "no archiver runs for %s: start "
		    "one with tributary-archiver --archive %s", path, path);
	return FAILURE(err, err_size, "cannot ask the archiver of %s: %s", path,
	    e == EAGAIN ? "it does not answer" : strerror(e));
}
