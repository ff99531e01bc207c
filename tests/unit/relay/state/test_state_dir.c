#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "relay/state/private_socket.h"
#include "relay/state/state_dir.h"
#include "transport/loop/loop.h"

static char base[] = "/tmp/test_state_dir.XXXXXX";
static char path[128];
static char err[512];
static int taken;

static int
setup(void **state)
{
	strcpy(base, "/tmp/test_state_dir.XXXXXX");
	if (mkdtemp(base) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/state", base);
	err[0] = '\0';
	taken = 0;
	return 0;
}

static int
teardown(void **state)
{
	char command[160];

	snprintf(command, sizeof(command), "rm -rf %s", base);
	return system(command);
}

static void
refused(const char *with)
{
	assert_int_equal(state_dir_open(path, err, sizeof(err)), -1);
	if (strstr(err, with) == NULL)
		fail_msg("\"%s\" says nothing of \"%s\"", err, with);
}

static void
a_folder_is_made_for_its_user_alone(void **state)
{
	struct stat st;
	int fd;

	umask(0);
	fd = state_dir_open(path, err, sizeof(err));
	umask(022);
	assert_true(fd >= 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	close(fd);
	/* And taken again. */
	assert_true((fd = state_dir_open(path, err, sizeof(err))) >= 0);
	close(fd);
}

static void
what_others_could_change_is_refused(void **state)
{
	char other[160];

	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, 0720), 0);
	refused("chmod go-w");
	assert_int_equal(chmod(path, 0702), 0);
	refused("chmod go-w");
	assert_int_equal(chmod(path, 0755), 0);
	snprintf(other, sizeof(other), "%s/link", base);
	assert_int_equal(symlink(path, other), 0);
	strcpy(path, other);
	if (geteuid() == 0) {
		assert_int_equal(lchown(path, 65534, 65534), 0);
		refused("symbolic link");
	}
	snprintf(path, sizeof(path), "%s/file", base);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	refused("no folder");
	snprintf(path, sizeof(path), "%s/not/there", base);
	refused("--state-dir");
}

/* systemd's RuntimeDirectory= of a DynamicUser= is one. */
static void
a_link_of_our_own_is_followed(void **state)
{
	char there[160];
	int fd;

	snprintf(there, sizeof(there), "%s/there", base);
	assert_int_equal(mkdir(there, 0700), 0);
	assert_int_equal(symlink(there, path), 0);
	fd = state_dir_open(path, err, sizeof(err));
	assert_true(fd >= 0);
	close(fd);
}

static void
one_relay_at_a_time_has_it(void **state)
{
	char pid[32];
	int fd, lock;

	assert_true((fd = state_dir_open(path, err, sizeof(err))) >= 0);
	assert_true((lock = state_dir_lock(fd, path, err, sizeof(err))) >= 0);
	assert_int_equal(state_dir_lock(fd, path, err, sizeof(err)), -1);
	snprintf(pid, sizeof(pid), "process %d)", (int)getpid());
	assert_non_null(strstr(err, pid));
	close(lock);
	assert_true((lock = state_dir_lock(fd, path, err, sizeof(err))) >= 0);
	close(lock);
	close(fd);
}

static void
take_cb(void *arg, int fd)
{
	taken++;
	close(fd);
}

static void
its_sockets_are_found_and_are_nobody_elses(void **state)
{
	char at[STATE_DIR_PATH_MAX];
	struct private_socket *o;
	struct loop *l;
	struct stat st;
	int fd, error;

	assert_true((fd = state_dir_open(path, err, sizeof(err))) >= 0);
	assert_int_equal(state_dir_connect(path, STATE_DIR_CONTROL, &error),
	    -1);
	assert_int_equal(error, ENOENT);
	assert_non_null(l = loop_new());
	o = private_socket_new(&(struct private_socket_setup){ .loop = l,
	    .state_dir = path, .name = STATE_DIR_CONTROL, .fn = take_cb }, err,
	    sizeof(err));
	assert_non_null(o);
	assert_int_equal(state_dir_path(at, path, STATE_DIR_CONTROL, err,
	    sizeof(err)), 0);
	assert_int_equal(stat(at, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	close(fd);
	assert_true((fd = state_dir_connect(path, STATE_DIR_CONTROL,
	    &error)) >= 0);
	loop_run_once(l);
	assert_int_equal(taken, 1);
	close(fd);
	private_socket_free(o);
	assert_int_equal(state_dir_connect(path, STATE_DIR_CONTROL, &error),
	    -1);
	loop_free(l);
}

static void
an_answer_of_another_user_is_not_believed(void **state)
{
	char at[STATE_DIR_PATH_MAX];
	struct private_socket *o;
	struct loop *l;
	int fd, error = 0;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(base, 0755), 0);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(chown(path, 65534, 65534), 0);
	assert_int_equal(state_dir_path(at, path, STATE_DIR_CONTROL, err,
	    sizeof(err)), 0);
	assert_non_null(l = loop_new());
	assert_int_equal(seteuid(65534), 0);
	o = private_socket_new(&(struct private_socket_setup){ .loop = l,
	    .state_dir = path, .name = STATE_DIR_CONTROL, .fn = take_cb }, err,
	    sizeof(err));
	assert_int_equal(seteuid(0), 0);
	assert_non_null(o);
	assert_int_equal(chmod(at, 0666), 0);
	assert_int_equal(seteuid(65533), 0);
	fd = state_dir_connect(path, STATE_DIR_CONTROL, &error);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(fd, -1);
	assert_int_equal(error, EACCES);
	/* Root may ask anybody. */
	assert_true((fd = state_dir_connect(path, STATE_DIR_CONTROL,
	    &error)) >= 0);
	close(fd);
	private_socket_free(o);
	loop_free(l);
}

static void
a_path_that_is_too_long_for_a_socket_is_told(void **state)
{
	char at[STATE_DIR_PATH_MAX], longer[200];

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(state_dir_path(at, longer, "control", err,
	    sizeof(err)), -1);
	assert_non_null(strstr(err, "too long"));
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_folder_is_made_for_its_user_alone),
		T(what_others_could_change_is_refused),
		T(a_link_of_our_own_is_followed),
		T(one_relay_at_a_time_has_it),
		T(its_sockets_are_found_and_are_nobody_elses),
		T(an_answer_of_another_user_is_not_believed),
		T(a_path_that_is_too_long_for_a_socket_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
