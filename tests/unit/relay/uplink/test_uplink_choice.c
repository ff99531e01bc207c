#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "relay/uplink/uplink_internal.h"
#include "tests/unit/relay/uplink/uplink_world.h"
#include "transport/connect/placement.h"

#define MOVE_AFTER 30000u

static struct addr to[2];
static struct addr *home, *other;
static struct fake_collector at_other;

/* Two collectors, none of which listens yet: world->collector, at_other. */
static int
setup(void **state)
{
	struct uplink_setup with;
	const char *names[] = { to[0].text, to[1].text };
	char path[96], err[256] = "";
	size_t order[2];

	if (world_setup(state) != 0)
		return -1;
	collector_init(&at_other, world->loop);
	memcpy(at_other.id, "another-collect", LINK_ID_BYTES);
	world->settings.move_after_ms = MOVE_AFTER;
	to[0] = world->to;
	snprintf(path, sizeof(path), "%s/relay-2", world->dir);
	assert_int_equal(addr_parse(&to[1], path, err, sizeof(err)), 0);
	assert_int_equal(placement_order("device-7", names, 2, order, err,
	    sizeof(err)), 0);
	home = &to[order[0]];
	other = &to[order[1]];
	with = (struct uplink_setup){ .state_dirfd = -1,
		.loop = world->loop,
		.settings = &world->settings, .to = to, .n_to = 2,
		.outbox = world->outbox };
	uplink_free(world->u);
	world->u = uplink_new(&with, err, sizeof(err));
	assert_non_null(world->u);
	return 0;
}

static int
teardown(void **state)
{
	collector_done(&at_other);
	return world_teardown(state);
}

static void
is_linked_to(const struct addr *collector, uint64_t moves)
{
	assert_int_equal(world_view()->state, UPLINK_LINKED);
	assert_string_equal(world_view()->peer, collector->text);
	assert_int_equal(world_view()->rank, collector == other);
	assert_string_equal(world_view()->home, home->text);
	assert_int_equal(world_view()->n_collectors, 2);
	assert_int_equal(world_view()->moves, moves);
}

static void
link_home(void)
{
	collector_listen(&world->collector, home->text);
	world_start();
	is_linked_to(home, 0);
	world->collector.why = TRIBUTARY__LINK_OPENED__WHY__RESUMED;
}

static void
end_home(void)
{
	collector_deafen(&world->collector);
	collector_cut(&world->collector);
	world_settle();
}

static void
home_is_first_and_then_the_other(void **state)
{
	collector_listen(&at_other, other->text);
	world_start();
	world_pass(0);
	is_linked_to(other, 0);
	assert_string_equal(world_view()->why,
	    "home did not answer at the start");
}

static void
one_that_does_not_answer_is_left_after_ten_seconds(void **state)
{
	int sv = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* A listener that nobody serves. */
	assert_int_equal(bind(sv, (struct sockaddr *)&home->sa, home->sa_len),
	    0);
	assert_int_equal(listen(sv, 5), 0);
	collector_listen(&at_other, other->text);
	world_start();
	world_pass(9999);
	assert_int_equal(world_view()->state, UPLINK_CONNECTING);
	assert_string_equal(world_view()->peer, home->text);
	world_pass(1);
	is_linked_to(other, 0);
	/* And that attempt's time is over, too. */
	world_pass(60000);
	is_linked_to(other, 0);
	close(sv);
}

static void
it_stays_until_its_collector_is_gone_for_long(void **state)
{
	collector_listen(&at_other, other->text);
	link_home();
	end_home();
	world_pass(MOVE_AFTER - 1000);
	assert_int_equal(world_view()->state, UPLINK_WAITING);
	assert_string_equal(world_view()->peer, home->text);
	assert_int_equal(at_other.opens, 0);
	world_pass(MOVE_AFTER + 2000);
	is_linked_to(other, 1);
	assert_string_equal(world_view()->why,
	    "the collector before was gone for too long");
	/* And there it stays, though home is back. */
	collector_listen(&world->collector, home->text);
	world_pass(600000);
	is_linked_to(other, 1);
}

static void
one_that_comes_back_in_time_keeps_it(void **state)
{
	collector_listen(&at_other, other->text);
	link_home();
	end_home();
	world_pass(10000);
	collector_listen(&world->collector, home->text);
	world_pass(MOVE_AFTER - 10000);
	is_linked_to(home, 0);
	assert_int_equal(at_other.opens, 0);
}

static void
it_goes_home_when_it_connects_again(void **state)
{
	collector_listen(&at_other, other->text);
	world_start();
	world_pass(0);
	is_linked_to(other, 0);
	at_other.why = TRIBUTARY__LINK_OPENED__WHY__RESUMED;
	/* Home is still away: it comes back to the other. */
	collector_cut(&at_other);
	world_pass(200);
	is_linked_to(other, 0);
	assert_int_equal(at_other.opens, 3);
	collector_listen(&world->collector, home->text);
	world_pass(60000);
	is_linked_to(other, 0);
	collector_cut(&at_other);
	world_pass(200);
	is_linked_to(home, 1);
	assert_int_equal(world->collector.opens, 1);
}

static void
one_that_asks_for_it_is_left(void **state)
{
	link_home();
	/* Nobody else is there. */
	uplink_move_on(world->u, CHOICE_ASKED);
	assert_int_equal(world_view()->state, UPLINK_WAITING);
	world_pass(0);
	is_linked_to(home, 0);
	collector_listen(&at_other, other->text);
	uplink_move_on(world->u, CHOICE_ASKED);
	world_pass(0);
	is_linked_to(other, 1);
	assert_string_equal(world_view()->why,
	    "the collector before asked to be left");
}

static void
perfettos_way_takes_no_longer(void **state)
{
	world->settings.protocol = RELAY_CLASSIC_ONLY;
	world_start();
	assert_ptr_equal(fakes.classic.to, home);
	world_pass(9999);
	assert_ptr_equal(fakes.classic.to, home);
	world_pass(1);
	assert_ptr_equal(fakes.classic.to, other);
	assert_int_equal(fakes.classics, 1);
	fakes.classic.up(fakes.classic.arg);
	world_pass(60000);
	assert_ptr_equal(fakes.classic.to, other);
	assert_int_equal(world_view()->rank, 1);
	/* It stays here, too, and then goes back. */
	fakes.classic.down(fakes.classic.arg, "gone");
	world_pass(200);
	assert_ptr_equal(fakes.classic.to, other);
	fakes.classic.up(fakes.classic.arg);
	world_settle();
	world_pass(0);
	assert_ptr_equal(fakes.classic.to, home);
	assert_int_equal(fakes.classics, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(home_is_first_and_then_the_other),
		TEST(one_that_does_not_answer_is_left_after_ten_seconds),
		TEST(it_stays_until_its_collector_is_gone_for_long),
		TEST(one_that_comes_back_in_time_keeps_it),
		TEST(it_goes_home_when_it_connects_again),
		TEST(one_that_asks_for_it_is_left),
		TEST(perfettos_way_takes_no_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
