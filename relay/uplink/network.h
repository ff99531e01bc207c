/*
 * network: changes of the network as the kernel announces them (rtnetlink):
 * there may be a route again, or an address of this machine is gone.
 */
#ifndef RELAY_UPLINK_NETWORK_H
#define RELAY_UPLINK_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "transport/base/compiler.h"

struct loop;
struct uplink_network;

struct uplink_network_ops {
	/* An interface, address or route came.  Often; it may mean nothing. */
	void (*came)(void *arg);
	/* One of our addresses is gone; its port is 0. */
	void (*address_gone)(void *arg, const struct sockaddr_storage *sa);
};

/* ops is borrowed.  NULL: no netlink socket; the relay works without. */
struct uplink_network *uplink_network_new(struct loop *l,
    const struct uplink_network_ops *ops, void *arg) MUST_CHECK;
void uplink_network_free(struct uplink_network *n);

/* Parses one datagram of the kernel, and calls ops.  Pure. */
void uplink_network_read(const void *data, size_t len,
    const struct uplink_network_ops *ops, void *arg);

/* Whether two IP addresses are the same; ports do not count.  Pure. */
bool uplink_network_is_same(const struct sockaddr_storage *a,
    const struct sockaddr_storage *b);

#endif /* RELAY_UPLINK_NETWORK_H */
