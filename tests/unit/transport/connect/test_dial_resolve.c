#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "transport/connect/dial.h"
#include "transport/connect/listener.h"
#include "transport/loop/loop.h"
#include "transport/socket/addr.h"

/*
 * A name server that answers when the test says so.  It takes the place of the
 * C library's.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool may_answer;
static int asked;
static int answered;
static int result;

static struct addrinfo *
loopback(const char *port)
{
	struct sockaddr_in *sa = calloc(1, sizeof(*sa));
	struct addrinfo *ai = calloc(1, sizeof(*ai));

	sa->sin_family = AF_INET;
	sa->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	sa->sin_port = htons((uint16_t)atoi(port));
	ai->ai_addr = (struct sockaddr *)sa;
	ai->ai_addrlen = sizeof(*sa);
	return ai;
}

int
getaddrinfo(const char *node, const char *service,
    const struct addrinfo *hints, struct addrinfo **res)
{
	int rc;

	pthread_mutex_lock(&lock);
	asked++;
	pthread_cond_broadcast(&changed);
	while (!may_answer)
		pthread_cond_wait(&changed, &lock);
	rc = result;
	if (rc == 0)
		*res = loopback(service);
	answered++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return rc;
}

void
freeaddrinfo(struct addrinfo *res)
{
	free(res->ai_addr);
	free(res);
}

static void
answer_with(int rc)
{
	pthread_mutex_lock(&lock);
	result = rc;
	may_answer = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void
wait_asked(int n)
{
	pthread_mutex_lock(&lock);
	while (asked < n)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void
wait_answered(int n)
{
	pthread_mutex_lock(&lock);
	while (answered < n)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

/* ---- the fixture ---- */

static struct {
	struct loop *loop;
	struct listener *listener;
	struct dial *dial;
	int accepted;
	int done;
	int fd;
	int error;
	char detail[256];
	char err[256];
} t;

static void
accepted(struct listener *l, int fd, void *arg)
{
	t.accepted++;
	close(fd);
}

static void
dialled(const struct dial_result *r, int error, void *arg)
{
	t.done++;
	t.fd = r != NULL ? r->fd : -1;
	t.error = error;
	snprintf(t.detail, sizeof(t.detail), "%s", dial_error_detail(t.dial));
	dial_free(t.dial);
	t.dial = NULL;
}

static int
setup(void **state)
{
	memset(&t, 0, sizeof(t));
	t.fd = -1;
	may_answer = false;
	asked = answered = 0;
	t.loop = loop_new();
	return t.loop == NULL;
}

static int
teardown(void **state)
{
	dial_free(t.dial);
	listener_free(t.listener);
	loop_free(t.loop);
	if (t.fd >= 0)
		close(t.fd);
	return 0;
}

#define RUN_UNTIL(cond)                                                        \
	do {                                                                   \
		uint64_t start_ = loop_now_ms();                               \
		while (!(cond)) {                                              \
			loop_run_once(t.loop);                                 \
			assert_true(loop_now_ms() - start_ < 30000);           \
		}                                                              \
	} while (0)

static void
listen_here(void)
{
	struct addr a;

	assert_int_equal(addr_parse(&a, "127.0.0.1:0", t.err, sizeof(t.err)),
	    0);
	t.listener = listener_new(t.loop, &(struct listener_setup){ .addr = &a,
	    .fn = accepted }, t.err, sizeof(t.err));
	if (t.listener == NULL)
		fail_msg("%s", t.err);
}

static void
dial(const char *text)
{
	static const struct dial_options how = { .in_background = true };
	struct addr a;

	assert_int_equal(addr_parse(&a, text, t.err, sizeof(t.err)), 0);
	t.dial = dial_new(t.loop, &(struct dial_request){ .addr = &a,
	    .how = &how, .fn = dialled }, t.err, sizeof(t.err));
}

/* ---- the tests ---- */

static void
the_loop_goes_on_until_the_name_server_has_answered(void **state)
{
	char text[64];
	int i;

	listen_here();
	snprintf(text, sizeof(text), "collector:%d",
	    listener_port(t.listener));
	dial(text);
	assert_non_null(t.dial);
	wait_asked(1);
	for (i = 0; i < 10; i++)
		loop_run_once(t.loop);
	assert_int_equal(t.done, 0);
	answer_with(0);
	RUN_UNTIL(t.done > 0 && t.accepted > 0);
	assert_int_equal(t.done, 1);
	assert_true(t.fd >= 0);
	assert_string_equal(t.detail, "");
}

static void
a_name_that_is_not_found_is_an_outcome(void **state)
{
	answer_with(EAI_NONAME);
	dial("nowhere:5");
	assert_non_null(t.dial);
	RUN_UNTIL(t.done > 0);
	assert_int_equal(t.fd, -1);
	assert_non_null(strstr(t.detail, "cannot resolve nowhere: "));
}

static void
who_gives_up_hears_nothing_of_it(void **state)
{
	dial("slow:5");
	wait_asked(1);
	dial_free(t.dial);
	t.dial = NULL;
	answer_with(0);
	wait_answered(1);
	loop_run_once(t.loop);
	assert_int_equal(t.done, 0);
}

static void
an_answer_that_is_on_its_way_is_dropped_as_well(void **state)
{
	answer_with(0);
	dial("quick:5");
	wait_answered(1);
	dial_free(t.dial);
	t.dial = NULL;
	loop_run_once(t.loop);
	assert_int_equal(t.done, 0);
}

static void
addresses_need_no_name_server(void **state)
{
	char text[64];

	listen_here();
	snprintf(text, sizeof(text), "127.0.0.1:%d",
	    listener_port(t.listener));
	dial(text);
	RUN_UNTIL(t.done > 0);
	assert_true(t.fd >= 0);
	assert_int_equal(asked, 0);
}

static void
threads_do_not_pile_up_before_a_dead_name_server(void **state)
{
	int n;

	for (n = 0; n < 1000; n++) {
		dial("dead:5");
		if (t.dial == NULL)
			break;
		dial_free(t.dial);
		t.dial = NULL;
	}
	assert_in_range(n, 1, 100);
	assert_non_null(strstr(t.err, "name servers do not answer"));
	answer_with(0);
	wait_answered(n);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_loop_goes_on_until_the_name_server_has_answered),
		TEST(a_name_that_is_not_found_is_an_outcome),
		TEST(who_gives_up_hears_nothing_of_it),
		TEST(an_answer_that_is_on_its_way_is_dropped_as_well),
		TEST(addresses_need_no_name_server),
		/* The last: its threads may still be on their way out. */
		TEST(threads_do_not_pile_up_before_a_dead_name_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
