#include "relay/uplink/network.h"

#include <errno.h>
#include <event2/event.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/loop/loop.h"

/* The kernel's messages are a page at most. */
#define NETWORK_DATAGRAM_MAX 16384u
/* Datagrams in one turn of the loop. */
#define NETWORK_READS_MAX 16

struct uplink_network {
	int fd;
	struct event *ev;
	const struct uplink_network_ops *ops;
	void *arg;
};

bool
uplink_network_is_same(const struct sockaddr_storage *a,
    const struct sockaddr_storage *b)
{
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)a;
	const struct sockaddr_in *b4 = (const struct sockaddr_in *)b;
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return a->ss_family == AF_INET6 &&
	    memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
}

/* ---- messages ---- */

static bool
is_usable_link(const struct nlmsghdr *h)
{
	const struct ifinfomsg *m = NLMSG_DATA(h);

	return h->nlmsg_len >= NLMSG_LENGTH(sizeof(*m)) &&
	    (m->ifi_flags & IFF_RUNNING) != 0 &&
	    (m->ifi_flags & IFF_LOOPBACK) == 0;
}

static bool
is_usable_address(const struct nlmsghdr *h)
{
	const struct ifaddrmsg *m = NLMSG_DATA(h);

	return h->nlmsg_len >= NLMSG_LENGTH(sizeof(*m)) &&
	    m->ifa_scope != RT_SCOPE_HOST;
}

static bool
is_usable_route(const struct nlmsghdr *h)
{
	const struct rtmsg *m = NLMSG_DATA(h);

	return h->nlmsg_len >= NLMSG_LENGTH(sizeof(*m)) &&
	    m->rtm_type == RTN_UNICAST && (m->rtm_flags & RTM_F_CLONED) == 0;
}

static bool
set_address(struct sockaddr_storage *sa, int family, const struct rtattr *a)
{
	struct sockaddr_in *in = (struct sockaddr_in *)sa;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)sa;

	memset(sa, 0, sizeof(*sa));
	sa->ss_family = (sa_family_t)family;
	if (family == AF_INET && RTA_PAYLOAD(a) == sizeof(in->sin_addr)) {
		memcpy(&in->sin_addr, RTA_DATA(a), sizeof(in->sin_addr));
		return true;
	}
	if (family == AF_INET6 && RTA_PAYLOAD(a) == sizeof(in6->sin6_addr)) {
		memcpy(&in6->sin6_addr, RTA_DATA(a), sizeof(in6->sin6_addr));
		return true;
	}
	return false;
}

/* IFA_LOCAL is ours; where it is missing, IFA_ADDRESS is. */
static bool
find_address(const struct nlmsghdr *h, struct sockaddr_storage *sa)
{
	const struct ifaddrmsg *m = NLMSG_DATA(h);
	const struct rtattr *a, *best = NULL;
	size_t len;

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)))
		return false;
	len = h->nlmsg_len - NLMSG_LENGTH(sizeof(*m));
	for (a = IFA_RTA(m); RTA_OK(a, len); a = RTA_NEXT(a, len)) {
		if (a->rta_type == IFA_LOCAL ||
		    (a->rta_type == IFA_ADDRESS && best == NULL))
			best = a;
	}
	return best != NULL && set_address(sa, m->ifa_family, best);
}

void
uplink_network_read(const void *data, size_t len,
    const struct uplink_network_ops *ops, void *arg)
{
	const struct nlmsghdr *h;
	struct sockaddr_storage sa;
	bool came = false;

	for (h = data; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
		switch (h->nlmsg_type) {
		case RTM_NEWLINK:
			came = came || is_usable_link(h);
			break;
		case RTM_NEWADDR:
			came = came || is_usable_address(h);
			break;
		case RTM_NEWROUTE:
			came = came || is_usable_route(h);
			break;
		case RTM_DELADDR:
			if (find_address(h, &sa))
				ops->address_gone(arg, &sa);
			break;
		}
	}
	if (came)
		ops->came(arg);
}

/* ---- the socket ---- */

/* False: there is no more. */
static bool
read_one(struct uplink_network *n)
{
	_Alignas(struct nlmsghdr) uint8_t buf[NETWORK_DATAGRAM_MAX];
	struct sockaddr_nl from = { 0 };
	socklen_t from_len = sizeof(from);
	ssize_t len;

	len = recvfrom(n->fd, buf, sizeof(buf), MSG_DONTWAIT,
	    (struct sockaddr *)&from, &from_len);
	if (len < 0) {
		/* There was more than it keeps for us: something came. */
		if (errno == ENOBUFS)
			n->ops->came(n->arg);
		return false;
	}
	if (from.nl_pid == 0) /* the kernel's own */
		uplink_network_read(buf, (size_t)len, n->ops, n->arg);
	return true;
}

static void
network_cb(evutil_socket_t fd, short what, void *arg)
{
	struct uplink_network *n = arg;
	int i;

	for (i = 0; i < NETWORK_READS_MAX && read_one(n); i++)
		;
}

struct uplink_network *
uplink_network_new(struct loop *l, const struct uplink_network_ops *ops,
    void *arg)
{
	struct sockaddr_nl sa = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR |
		    RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE |
		    RTMGRP_IPV6_ROUTE,
	};
	struct uplink_network *n;

	if ((n = calloc(1, sizeof(*n))) == NULL)
		return NULL;
	n->ops = ops;
	n->arg = arg;
	n->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
	    NETLINK_ROUTE);
	if (n->fd < 0 || bind(n->fd, (struct sockaddr *)&sa, sizeof(sa)) != 0)
		goto fail;
	n->ev = event_new(loop_base(l), n->fd, EV_READ | EV_PERSIST,
	    network_cb, n);
	if (n->ev == NULL || event_add(n->ev, NULL) != 0)
		goto fail;
	return n;

fail:
	uplink_network_free(n);
	return NULL;
}

void
uplink_network_free(struct uplink_network *n)
{
	if (n == NULL)
		return;
	if (n->ev != NULL)
		event_free(n->ev);
	if (n->fd >= 0)
		close(n->fd);
	free(n);
}
