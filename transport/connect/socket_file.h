/*
 * socket_file: the file of a UNIX socket that listens: whether it is still
 * ours, its permissions, and when it is removed.  Knows nothing of the socket
 * itself.  Used on its loop's thread only.
 */
#ifndef TRANSPORT_CONNECT_SOCKET_FILE_H
#define TRANSPORT_CONNECT_SOCKET_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

#include "transport/base/compiler.h"
#include "transport/socket/addr.h"

struct loop;
struct loop_timer;
struct path_watch;

/* Embedded by the listener, zeroed before init. */
struct socket_file {
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	                          /* empty: the listener has no file */
	/* Private. */
	struct loop *loop;        /* borrowed */
	dev_t dev;
	ino_t ino;
	struct path_watch *watch; /* owned */
	struct loop_timer *look;  /* owned; armed when the file changed */
	bool has_mode;            /* socket_file_set_permissions() */
	unsigned mode;
	long gid;
	mode_t made_mode;         /* of the file, when it was made */
};

enum socket_file_owner {
	SOCKET_FILE_OURS,
	SOCKET_FILE_OF_ANOTHER, /* another program made a file there */
	SOCKET_FILE_GONE,
};

/*
 * Removes a socket file at a's path on which no program accepts.  -1, with a
 * sentence in err: a program does, or the file is no socket, or it cannot be
 * removed.
 */
int socket_file_clear_stale(const struct addr *a, char *err, size_t err_size)
    MUST_CHECK;

/*
 * changed() is called a second after something happened to the file, which may
 * be there still.  -1: no memory.
 */
int socket_file_init(struct socket_file *f, struct loop *l,
    void (*changed)(void *arg), void *arg) MUST_CHECK;
/* Leaves the file where it is. */
void socket_file_done(struct socket_file *f);

/* Takes the file at path, which is not empty, as ours, and watches it. */
void socket_file_own(struct socket_file *f, const char *path);
enum socket_file_owner socket_file_owner(const struct socket_file *f);
/* Calls changed() in a second. */
void socket_file_look_later(struct socket_file *f);
/*
 * The socket was bound again at path: watches the new file and gives it the
 * permissions of the one before.  Failures go to the log.
 */
void socket_file_made_anew(struct socket_file *f);
/* Unlinks the file if it is ours still. */
void socket_file_remove(struct socket_file *f);

/* As listener_set_permissions(). */
int socket_file_set_permissions(struct socket_file *f, unsigned mode, long gid,
    char *err, size_t err_size) MUST_CHECK;

#endif /* TRANSPORT_CONNECT_SOCKET_FILE_H */
