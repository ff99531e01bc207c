#include "tests/unit/client/ftrace/tracefs/fake_tracefs.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char root[64];

const char *
fake_tracefs_make(void)
{
	static const char *const files[][2] = {
		{ "trace_clock", "local [global] counter mono_raw boot\n" },
		{ "tracing_on", "1\n" },
		{ "buffer_size_kb", "7 (expanded: 1408)\n" },
		{ "buffer_percent", "50\n" },
		{ "tracing_cpumask", "3\n" },
		{ "set_event_pid", "" },
		{ "set_event", "" },
		{ "current_tracer", "nop\n" },
		{ "trace", "# nothing\n" },
		{ "per_cpu/cpu0/stats", "entries: 1\n" },
		{ "per_cpu/cpu1/stats", "entries: 1\n" },
	};
	size_t i;

	strcpy(root, "/tmp/fake-tracefs-XXXXXX");
	assert_non_null(mkdtemp(root));
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		fake_tracefs_put(files[i][0], files[i][1]);
	return root;
}

static int
remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

void
fake_tracefs_remove(void)
{
	assert_int_equal(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

void
fake_tracefs_put_bytes(const char *path, const void *data, size_t len)
{
	char full[512], *slash;
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (slash = full + strlen(root) + 1;
	    (slash = strchr(slash, '/')) != NULL; slash++) {
		*slash = '\0';
		mkdir(full, 0700);
		*slash = '/';
	}
	assert_non_null(f = fopen(full, "w"));
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

void
fake_tracefs_put(const char *path, const char *text)
{
	fake_tracefs_put_bytes(path, text, strlen(text));
}

void
fake_tracefs_holds(const char *path, const char *text)
{
	char full[512], found[4096];
	size_t n;
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	if ((f = fopen(full, "r")) == NULL)
		fail_msg("%s is not there", path);
	n = fread(found, 1, sizeof(found) - 1, f);
	found[n] = '\0';
	fclose(f);
	if (strcmp(found, text) != 0)
		fail_msg("%s holds \"%s\" instead of \"%s\"", path, found,
		    text);
}
