#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "transport/socket/fd_queue.h"
#include "transport/socket/input_rest.h"
#include "transport/socket/output_queue.h"

static bool
is_open(int fd)
{
	return fcntl(fd, F_GETFD) != -1;
}

static int
new_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* Takes up to max bytes off the queue as a socket would. */
static size_t
drain(struct output_queue *q, char *out, size_t max, int *fd)
{
	struct iovec iov[4];
	size_t n = 0, take;
	int i, niov = output_queue_peek(q, iov, 4, fd);

	for (i = 0; i < niov && n < max; i++) {
		take = iov[i].iov_len < max - n ? iov[i].iov_len : max - n;
		memcpy(out + n, iov[i].iov_base, take);
		n += take;
	}
	output_queue_consume(q, n);
	return n;
}

static void
output_leaves_in_order_in_pieces_of_any_size(void **state)
{
	static char in[100000], out[100000];
	size_t at, n, step;
	struct output_queue q;
	int fd;

	for (at = 0; at < sizeof(in); at++)
		in[at] = (char)(at * 7 + at / 256);
	for (step = 1; step < 20000; step = step * 3 + 1) {
		output_queue_init(&q);
		for (at = 0; at < sizeof(in); at += n) {
			n = at % 700 + 1;
			if (n > sizeof(in) - at)
				n = sizeof(in) - at;
			assert_int_equal(output_queue_add(&q, in + at, n / 3,
			    in + at + n / 3, n - n / 3, -1), 0);
		}
		assert_int_equal(q.bytes, sizeof(in));
		/* Small pieces share memory. */
		assert_true(q.memory < sizeof(in) * 5 / 4);
		for (at = 0; q.bytes > 0; at += n)
			n = drain(&q, out + at, step, &fd);
		assert_int_equal(at, sizeof(in));
		assert_memory_equal(in, out, sizeof(in));
		assert_int_equal(q.memory, 0);
	}
}

static void
a_descriptor_goes_with_its_own_bytes_alone(void **state)
{
	int own = new_fd(), second = new_fd(), fd;
	struct output_queue q;
	char out[64];

	output_queue_init(&q);
	assert_int_equal(output_queue_add(&q, "before", 6, NULL, 0, -1), 0);
	assert_int_equal(output_queue_add(&q, "with", 4, "fd", 2, own), 0);
	assert_int_equal(output_queue_add(&q, "after", 5, NULL, 0, -1), 0);
	assert_int_equal(output_queue_add(&q, "z", 1, NULL, 0, second), 0);

	assert_int_equal(drain(&q, out, 64, &fd), 6);
	assert_int_equal(fd, -1);
	assert_int_equal(drain(&q, out, 2, &fd), 2);
	assert_int_equal(fd, own);
	assert_false(is_open(own)); /* sent, with the first byte */
	assert_int_equal(drain(&q, out, 64, &fd), 9);
	assert_int_equal(fd, -1);
	assert_memory_equal(out, "thfdafter", 9);
	assert_true(is_open(second));
	output_queue_done(&q);
	assert_false(is_open(second));
	assert_int_equal(q.bytes, 0);
	assert_int_equal(q.memory, 0);
}

static void
a_descriptor_belongs_to_the_message_in_which_its_read_ended(void **state)
{
	int a = new_fd(), b = new_fd(), c = new_fd();
	struct fd_queue q = { NULL };

	assert_int_equal(fd_queue_add(&q, a, 100), 0);
	assert_int_equal(fd_queue_add(&q, b, 150), 0);
	assert_int_equal(fd_queue_take_of(&q, 0, 99), -1);
	assert_int_equal(fd_queue_take_of(&q, 100, 149), -1);
	assert_int_equal(fd_queue_take_of(&q, 99, 100), a);
	assert_int_equal(fd_queue_take_of(&q, 99, 100), -1);
	assert_int_equal(fd_queue_add(&q, c, 200), 0);
	fd_queue_drop_until(&q, 149);
	assert_true(is_open(b));
	fd_queue_drop_until(&q, 150);
	assert_false(is_open(b));
	assert_int_equal(fd_queue_take_of(&q, 150, 200), c);
	assert_int_equal(fd_queue_take_of(&q, 150, 200), -1);
	assert_null(q.items);
	close(a);
	close(c);
}

static void
a_fifth_descriptor_is_closed(void **state)
{
	struct fd_queue q = { NULL };
	int fds[5], i;

	for (i = 0; i < 5; i++) {
		fds[i] = new_fd();
		assert_int_equal(fd_queue_add(&q, fds[i], 1), 0);
	}
	assert_false(is_open(fds[4]));
	for (i = 0; i < 4; i++)
		assert_true(is_open(fds[i]));
	fd_queue_done(&q);
	for (i = 0; i < 4; i++)
		assert_false(is_open(fds[i]));
}

static void
kept_input_grows_to_what_is_wanted_and_shrinks(void **state)
{
	struct input_rest k = { 0 };
	uint8_t data[1000];
	size_t i;

	for (i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)i;
	assert_int_equal(input_rest_add(&k, data, 4, 500), 0);
	assert_int_equal(k.cap, 500);
	assert_int_equal(input_rest_add(&k, data + 4, 496, 500), 0);
	assert_int_equal(k.cap, 500);
	input_rest_drop(&k, 100);
	assert_int_equal(input_rest_add(&k, data + 500, 500, 0), 0);
	assert_int_equal(input_rest_len(&k), 900);
	assert_memory_equal(input_rest_data(&k), data + 100, 900);
	input_rest_drop(&k, 890);
	input_rest_shrink(&k, 20);
	assert_int_equal(k.cap, 20);
	assert_int_equal(input_rest_len(&k), 10);
	assert_memory_equal(input_rest_data(&k), data + 990, 10);
	input_rest_shrink(&k, 15); /* not worth it */
	assert_int_equal(k.cap, 20);
	input_rest_free(&k);
	assert_null(k.mem);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(output_leaves_in_order_in_pieces_of_any_size),
		cmocka_unit_test(a_descriptor_goes_with_its_own_bytes_alone),
		cmocka_unit_test(
		    a_descriptor_belongs_to_the_message_in_which_its_read_ended),
		cmocka_unit_test(a_fifth_descriptor_is_closed),
		cmocka_unit_test(kept_input_grows_to_what_is_wanted_and_shrinks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
