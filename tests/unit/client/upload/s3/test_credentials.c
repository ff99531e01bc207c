#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/upload/s3/credentials.h"

static char file[] = "/tmp/test_credentials.XXXXXX";
static char err[512];

static void
write_file(const char *text, mode_t mode)
{
	FILE *f = fopen(file, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(file, mode), 0);
}

static int
setup(void **state)
{
	int fd = mkstemp(file);

	return fd < 0 ? -1 : close(fd);
}

static int
teardown(void **state)
{
	return unlink(file);
}

static void
the_section_default_of_a_file_counts(void **state)
{
	struct credentials c;

	write_file("[other]\naws_access_key_id = no\n[default]\r\n"
	    "# aws_access_key_id = no\r\n aws_access_key_id=AK\r\n"
	    "aws_secret_access_key = S/K+x= \naws_session_token = T\n"
	    "region = x\n[last]\naws_access_key_id = no\n", 0600);
	assert_int_equal(credentials_load(&c, file, err, sizeof(err)), 0);
	assert_string_equal(c.key, "AK");
	assert_string_equal(c.secret, "S/K+x=");
	assert_string_equal(c.token, "T");
	credentials_done(&c);
	write_file("aws_access_key_id=A\naws_secret_access_key=B\n", 0640);
	assert_int_equal(credentials_load(&c, file, err, sizeof(err)), 0);
	assert_null(c.token);
	credentials_done(&c);
}

static void
a_failure_tells_no_secret(void **state)
{
	struct credentials c;

	write_file("[default]\naws_secret_access_key = hush\n", 0600);
	assert_int_equal(credentials_load(&c, file, err, sizeof(err)), -1);
	assert_non_null(strstr(err, "has no aws_access_key_id"));
	assert_null(strstr(err, "hush"));
	write_file("aws_access_key_id = A\naws_secret_access_key = hush\n",
	    0604);
	assert_int_equal(credentials_load(&c, file, err, sizeof(err)), -1);
	assert_non_null(strstr(err, "chmod o="));
	assert_null(strstr(err, "hush"));
	assert_int_equal(credentials_load(&c, "/", err, sizeof(err)), -1);
	assert_int_equal(credentials_load(&c, "/none", err, sizeof(err)), -1);
}

static void
without_a_file_the_environment_counts(void **state)
{
	struct credentials c;

	setenv("AWS_ACCESS_KEY_ID", "AK", 1);
	unsetenv("AWS_SECRET_ACCESS_KEY");
	assert_int_equal(credentials_load(&c, NULL, err, sizeof(err)), -1);
	assert_non_null(strstr(err, "AWS_SECRET_ACCESS_KEY"));
	setenv("AWS_SECRET_ACCESS_KEY", "SK", 1);
	setenv("AWS_SESSION_TOKEN", "", 1);
	assert_int_equal(credentials_load(&c, NULL, err, sizeof(err)), 0);
	assert_string_equal(c.secret, "SK");
	assert_null(c.token);
	credentials_done(&c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_section_default_of_a_file_counts),
		cmocka_unit_test(a_failure_tells_no_secret),
		cmocka_unit_test(without_a_file_the_environment_counts),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
