#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "relay/uplink/network.h"

/* Messages as the kernel puts them together. */
struct datagram {
	_Alignas(struct nlmsghdr) uint8_t data[1024];
	size_t len;
};

static int came;
static int gone;
static struct sockaddr_storage gone_addr;

static void
on_came(void *arg)
{
	came++;
}

static void
on_gone(void *arg, const struct sockaddr_storage *sa)
{
	gone++;
	gone_addr = *sa;
}

static const struct uplink_network_ops ops = {
	.came = on_came,
	.address_gone = on_gone,
};

static int
setup(void **state)
{
	came = gone = 0;
	memset(&gone_addr, 0, sizeof(gone_addr));
	return 0;
}

static struct nlmsghdr *
put(struct datagram *d, int type, const void *body, size_t len)
{
	struct nlmsghdr *h = (struct nlmsghdr *)(d->data + d->len);

	memset(h, 0, NLMSG_SPACE(len));
	h->nlmsg_type = (uint16_t)type;
	h->nlmsg_len = (uint32_t)NLMSG_LENGTH(len);
	memcpy(NLMSG_DATA(h), body, len);
	d->len += NLMSG_ALIGN(h->nlmsg_len);
	return h;
}

static void
put_attribute(struct datagram *d, struct nlmsghdr *h, int type,
    const void *data, size_t len)
{
	struct rtattr *a = (struct rtattr *)(d->data + d->len);

	a->rta_type = (uint16_t)type;
	a->rta_len = (uint16_t)RTA_LENGTH(len);
	memcpy(RTA_DATA(a), data, len);
	d->len += RTA_ALIGN(a->rta_len);
	h->nlmsg_len += RTA_ALIGN(a->rta_len);
}

static void
put_link(struct datagram *d, unsigned flags)
{
	struct ifinfomsg m = { .ifi_flags = flags };

	put(d, RTM_NEWLINK, &m, sizeof(m));
}

static void
put_address(struct datagram *d, int type, int family, int scope)
{
	struct ifaddrmsg m = {
		.ifa_family = (uint8_t)family,
		.ifa_scope = (uint8_t)scope,
	};

	put(d, type, &m, sizeof(m));
}

static void
read_all(const struct datagram *d)
{
	uplink_network_read(d->data, d->len, &ops, NULL);
}

static void
an_interface_that_runs_may_be_a_way(void **state)
{
	struct datagram d = { .len = 0 };

	put_link(&d, IFF_UP);
	read_all(&d);
	assert_int_equal(came, 0);
	put_link(&d, IFF_UP | IFF_RUNNING | IFF_LOOPBACK);
	read_all(&d);
	assert_int_equal(came, 0);
	put_link(&d, IFF_UP | IFF_RUNNING);
	read_all(&d);
	assert_int_equal(came, 1);
}

static void
an_address_of_more_than_this_host_may_be_a_way(void **state)
{
	struct datagram d = { .len = 0 };

	put_address(&d, RTM_NEWADDR, AF_INET, RT_SCOPE_HOST);
	read_all(&d);
	assert_int_equal(came, 0);
	put_address(&d, RTM_NEWADDR, AF_INET, RT_SCOPE_UNIVERSE);
	/* One datagram is one piece of news. */
	put_address(&d, RTM_NEWADDR, AF_INET6, RT_SCOPE_LINK);
	read_all(&d);
	assert_int_equal(came, 1);
}

static void
a_route_may_be_a_way(void **state)
{
	struct rtmsg m = { .rtm_type = RTN_LOCAL };
	struct datagram d = { .len = 0 };

	put(&d, RTM_NEWROUTE, &m, sizeof(m));
	m.rtm_type = RTN_UNICAST;
	m.rtm_flags = RTM_F_CLONED;
	put(&d, RTM_NEWROUTE, &m, sizeof(m));
	read_all(&d);
	assert_int_equal(came, 0);
	m.rtm_flags = 0;
	put(&d, RTM_NEWROUTE, &m, sizeof(m));
	put(&d, RTM_DELROUTE, &m, sizeof(m));
	read_all(&d);
	assert_int_equal(came, 1);
}

static void
an_address_that_is_gone_is_named(void **state)
{
	struct ifaddrmsg m = { .ifa_family = AF_INET };
	const struct sockaddr_in *in = (struct sockaddr_in *)&gone_addr;
	struct datagram d = { .len = 0 };
	struct nlmsghdr *h;
	uint32_t peer = htonl(0x0a000001), ours = htonl(0x0a000002);

	h = put(&d, RTM_DELADDR, &m, sizeof(m));
	/* A point-to-point interface: ours is IFA_LOCAL, in either order. */
	put_attribute(&d, h, IFA_LOCAL, &ours, sizeof(ours));
	put_attribute(&d, h, IFA_ADDRESS, &peer, sizeof(peer));
	read_all(&d);
	assert_int_equal(gone, 1);
	assert_int_equal(in->sin_family, AF_INET);
	assert_int_equal(in->sin_addr.s_addr, ours);
	assert_int_equal(came, 0);
}

static void
an_address_of_ipv6_that_is_gone_is_named(void **state)
{
	struct ifaddrmsg m = { .ifa_family = AF_INET6 };
	const struct sockaddr_in6 *in = (struct sockaddr_in6 *)&gone_addr;
	struct datagram d = { .len = 0 };
	struct nlmsghdr *h;
	struct in6_addr ours;

	assert_int_equal(inet_pton(AF_INET6, "2001:db8::7", &ours), 1);
	h = put(&d, RTM_DELADDR, &m, sizeof(m));
	put_attribute(&d, h, IFA_ADDRESS, &ours, sizeof(ours));
	read_all(&d);
	assert_int_equal(gone, 1);
	assert_memory_equal(&in->sin6_addr, &ours, sizeof(ours));
}

static void
what_is_cut_short_says_nothing(void **state)
{
	struct ifaddrmsg m = { .ifa_family = AF_INET };
	struct datagram d = { .len = 0 };
	struct nlmsghdr *h;

	h = put(&d, RTM_DELADDR, &m, sizeof(m));
	put_attribute(&d, h, IFA_LOCAL, "abc", 3);
	read_all(&d);
	d.len = 0;
	put(&d, RTM_DELADDR, &m, 4);
	put(&d, RTM_NEWADDR, &m, 4);
	put(&d, RTM_NEWLINK, &m, 4);
	put(&d, RTM_NEWROUTE, &m, 4);
	read_all(&d);
	uplink_network_read(d.data, 7, &ops, NULL);
	assert_int_equal(gone, 0);
	assert_int_equal(came, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_interface_that_runs_may_be_a_way),
		TEST(an_address_of_more_than_this_host_may_be_a_way),
		TEST(a_route_may_be_a_way),
		TEST(an_address_that_is_gone_is_named),
		TEST(an_address_of_ipv6_that_is_gone_is_named),
		TEST(what_is_cut_short_says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
