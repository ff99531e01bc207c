/*
 * activation: listening sockets that were open when the process began: the
 * service manager's (LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES), and those of the
 * daemon before an upgrade (service/front/handover.h).
 */
#ifndef SERVICE_FRONT_ACTIVATION_H
#define SERVICE_FRONT_ACTIVATION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "service/settings/settings.h"
#include "transport/base/compiler.h"
#include "transport/socket/addr.h"
#include "transport/socket/passed_sockets.h"

#define ACTIVATION_MAX PASSED_SOCKETS_MAX

struct activated_socket {
	int fd; /* owned until taken; -1: taken by listener_adopt() */
	enum listen_port port;
	bool tls;
};

/* A socket that the daemon before the upgrade opened itself. */
struct inherited_socket {
	int fd; /* owned until taken; -1: taken */
	enum listen_port port;
	char address[ADDR_TEXT_MAX]; /* as that daemon's settings named it */
};

struct activation {
	struct activated_socket sockets[ACTIVATION_MAX];
	size_t n;
	struct inherited_socket *made; /* NULL: no upgrade */
	size_t n_made;
	bool inherited; /* an upgrade: sockets came from the daemon before */
	bool trial;     /* that daemon still runs: change nothing */
};

/*
 * Reads and removes the variables.  A socket named "producer", "consumer" or
 * "relay" serves that port, over TLS where "-tls" follows; without such a name
 * the first is for producers and the second for consumers.  a->n is 0 when no
 * socket was passed to this process.  After an upgrade, sockets that were
 * passed to the daemon before are among them.  -1 with a sentence in err: the
 * descriptors stay open.
 */
int activation_from_environment(struct activation *a, char *err,
    size_t err_size) MUST_CHECK;

/*
 * Moves the sockets that the daemon before made for an address of the settings
 * to fds, which the caller owns (prefers those of this listen_port).  Returns
 * their number, at most max.
 */
size_t activation_take_made(struct activation *a, enum listen_port port,
    const char *address, int *fds, size_t max);

/*
 * Closes the made sockets that were not taken, as the settings name them no
 * more, and removes the files of UNIX sockets.  A trial leaves the files.
 */
void activation_drop_made(struct activation *a);

/* Closes all sockets that were not taken; their files stay. */
void activation_done(struct activation *a);

bool activation_has(const struct activation *a, enum listen_port port);
bool activation_has_tls(const struct activation *a);

/* Whether one of the sockets is bound to this UNIX address. */
bool activation_is_bound_to(const struct activation *a,
    const struct sockaddr_storage *sa, socklen_t len);

#endif /* SERVICE_FRONT_ACTIVATION_H */
