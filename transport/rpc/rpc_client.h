/*
 * rpc_client: the client side of IPCFrame, for the probes, the command line,
 * the library and the relay.
 *
 * Connects (asynchronously), binds one service, looks methods up by name, and
 * matches replies to calls.  A method that the host does not offer fails like
 * one that was rejected.
 */
#ifndef TRANSPORT_RPC_RPC_CLIENT_H
#define TRANSPORT_RPC_RPC_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"
#include "transport/socket/addr.h"

struct dial_options;
struct loop;
struct rpc_client;
struct pb_writer;

/*
 * One reply.  ok false: rejected, not offered, or the connection ended (then
 * msg is NULL, more is false).  more: further replies to this call follow.  msg
 * is borrowed for the call.  fd >= 0 came with the reply and is the callee's.
 * Called at least once for each call that asked for a reply, unless the client
 * is freed first.
 */
typedef void (*rpc_reply_fn)(void *arg, bool ok, bool more,
    const uint8_t *msg, size_t len, int fd);

struct rpc_client_ops {
	/* Connected and bound; calls may be made. */
	void (*ready)(struct rpc_client *c, void *arg);
	/*
	 * Could not connect or bind, or the connection ended.  text is a
	 * sentence for people: the service's own, where it said why it refuses
	 * us; or why ssh or TLS failed.  Pending calls have failed before.  The
	 * client does nothing more, and is to be freed (rpc_client_free()).
	 */
	void (*down)(struct rpc_client *c, const char *text, void *arg);
	/* Output fell to the low-water mark.  May be NULL. */
	void (*drained)(struct rpc_client *c, void *arg);
};

/* Borrowed for the call, but ops, which outlives the client. */
struct rpc_client_setup {
	const struct addr *addr;
	/*
	 * transport/connect/dial.h; NULL: defaults.  Where its `service` is
	 * NULL, it is derived from the service below.
	 */
	const struct dial_options *how;
	const char *service;
	const struct rpc_client_ops *ops;
	void *arg;
};

/*
 * NULL only for lack of memory or where dial_new() fails (sentence in err).
 * Neither ready nor down is called from inside.
 */
struct rpc_client *rpc_client_new(struct loop *l,
    const struct rpc_client_setup *setup, char *err, size_t err_size)
    MUST_CHECK;
/* Over a socket that is connected already; owns fd on success. */
struct rpc_client *rpc_client_from_fd(struct loop *l, int fd,
    const char *service, const struct rpc_client_ops *ops, void *arg) MUST_CHECK;

/*
 * Inside down(): the host speaks this protocol, but does not know the service,
 * or gives no reason why it does not serve us.
 */
bool rpc_client_service_unknown(const struct rpc_client *c);

/* Legal inside its callbacks.  Pending calls are dropped silently. */
void rpc_client_free(struct rpc_client *c);

/*
 * Sets the fields of SetPeerIdentity, which goes ahead of BindService when set
 * before the connection is up.  NULL: not given.  Not sent over a UNIX socket
 * without a tunnel, where the kernel tells the service who we are.  Through a
 * tunnel (ssh, or a UNIX socket of which the other end is one: peer->forwarded)
 * it is always sent; fields that are not given are then our pid and uid, and
 * this machine's boot id and name.
 */
void rpc_client_set_identity(struct rpc_client *c, int32_t pid, int32_t uid,
    const char *machine_id_hint, const char *machine_name);

/*
 * Sets the identity of a program that speaks for itself: its process and
 * machine, with machine_name or else the host's name.  machine_name NULL: also
 * sends this_machine_clocks(), and a collector with the same clocks takes the
 * program for one of its own machine, as if it had come over a UNIX socket.
 */
void rpc_client_set_own_identity(struct rpc_client *c,
    const char *machine_name);

/*
 * Invokes a method by name.  args (encoded, copied) may be NULL for an empty
 * message.  fn NULL: asks for no reply (drop_reply).
 */
void rpc_invoke(struct rpc_client *c, const char *method, const void *args,
    size_t len, rpc_reply_fn fn, void *arg);

#define RPC_HEAD_MAX 2048u
/* As the parameters of rpc_invoke(), and: */
struct rpc_request {
	const char *method;
	const void *head; /* the first bytes of the arguments; may be NULL */
	size_t head_len;  /* at most RPC_HEAD_MAX */
	const void *args; /* the rest of them */
	size_t len;
	int fd; /* travels with the request, and stays the caller's; -1: none */
	rpc_reply_fn fn;
	void *arg;
};
void rpc_invoke_with(struct rpc_client *c, const struct rpc_request *r);

/* Whether the bound service has this method. */
bool rpc_client_offers(const struct rpc_client *c, const char *method);

/*
 * The address of our end, where the network has one (TCP, TLS).  -1: there is
 * none, or not yet.
 */
int rpc_client_local_address(const struct rpc_client *c,
    struct sockaddr_storage *out) MUST_CHECK;
size_t rpc_client_queued(const struct rpc_client *c);
/* As stream_push(). */
void rpc_client_push(struct rpc_client *c);
/* As stream_gather_segments(). */
void rpc_client_gather_segments(struct rpc_client *c, bool on);
void rpc_client_set_limits(struct rpc_client *c, size_t hard, size_t low);
/* Whether descriptors can travel: over a UNIX socket without a tunnel. */
bool rpc_client_can_pass_fds(const struct rpc_client *c);
/* Stops reading replies / goes on (back-pressure towards the service). */
void rpc_client_pause(struct rpc_client *c);
void rpc_client_resume(struct rpc_client *c);

#endif /* TRANSPORT_RPC_RPC_CLIENT_H */
