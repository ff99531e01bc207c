#include "relay/uplink/uplink_internal.h"

#include <netinet/in.h>
#include <string.h>

#include "relay/uplink/network.h"
#include "transport/base/log.h"
#include "transport/loop/loop.h"

/* Between two attempts, however often the network changes. */
#define CHANGES_GAP_MS 1000u
/*
 * A connection that was begun before the network changed may wait for answers
 * that never come; it is begun anew when it had this long, and not often.
 */
#define CHANGES_HURRY_MS     3000u
#define CHANGES_HURRY_GAP_MS 30000u

void
uplink_try_now(struct uplink *u)
{
	uint64_t now = loop_now_ms(), soonest = u->tried_ms + CHANGES_GAP_MS;

	if (u->state != UPLINK_WAITING || u->producers == NULL ||
	    u->setup.to == NULL || u->stopping)
		return;
	if (u->next_try_ms > soonest)
		uplink_wait(u, now < soonest ? soonest - now : 0);
}

static void
network_came(void *arg)
{
	struct uplink *u = arg;
	uint64_t now = loop_now_ms();

	uplink_try_now(u);
	if (u->state == UPLINK_LINKED && u->link != NULL)
		uplink_conn_hurry(u->link);
	if (u->state != UPLINK_CONNECTING || u->setup.to == NULL ||
	    u->stopping || now - u->since_ms < CHANGES_HURRY_MS ||
	    (u->hurried_ms != 0 && now - u->hurried_ms < CHANGES_HURRY_GAP_MS))
		return;
	u->hurried_ms = now;
	uplink_conn_free(u->link);
	u->link = NULL;
	uplink_attempt(u);
}

static bool
is_same_address(const struct sockaddr_storage *a,
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

static void
network_address_gone(void *arg, const struct sockaddr_storage *gone)
{
	struct uplink *u = arg;
	struct sockaddr_storage ours;

	if (u->link != NULL && uplink_conn_address(u->link, &ours) == 0 &&
	    is_same_address(&ours, gone))
		uplink_conn_end(u->link, "our address is gone: the network "
		    "has changed");
}

void
uplink_watch_network(struct uplink *u)
{
	static const struct uplink_network_ops ops = {
		.came = network_came,
		.address_gone = network_address_gone,
	};

	u->network = uplink_network_new(u->setup.loop, &ops, u);
	if (u->network == NULL)
		log_debug("the kernel does not tell of changes of the "
		    "network: every attempt waits for its time");
}
