#include "client/ftrace/session/ftrace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/ftrace/events/kernel_symbols.h"
#include "client/ftrace/events/printk_strings.h"
#include "client/ftrace/session/ftrace_internal.h"
#include "transport/base/log.h"

/* After a boot; the kernel's smallest buffer is two pages. */
static const char *const as_after_boot[][2] = {
	{ "tracing_on", "0" },
	{ "current_tracer", "nop" },
	{ "events/enable", "0" },
	{ "set_event_pid", "" },
	{ "events/raw_syscalls/sys_enter/filter", "0" },
	{ "events/raw_syscalls/sys_exit/filter", "0" },
	{ "trace", "" },
	{ "buffer_size_kb", "4" },
	{ "buffer_percent", "50" },
	{ "tracing_on", "1" },
};

static void
recover(struct ftrace *f)
{
	char why[TRACEFS_WHY_MAX], failed[TRACEFS_PATH_MAX];
	int n;

	if (!tracefs_lock(f->tracefs, why)) {
		log_warn("%s", why);
		return;
	}
	n = changes_recover(f->changes, failed, sizeof(failed));
	if (n > 0)
		log_warn("put back %d settings of %s that a process which was "
		    "killed had changed", n, tracefs_root(f->tracefs));
	else if (n < 0)
		log_warn("cannot read %s: %s; settings of %s that a process "
		    "which was killed had changed are not put back", f->notes,
		    strerror(errno), tracefs_root(f->tracefs));
	if (failed[0] != '\0')
		log_warn("%s/%s, which a process that was killed had changed, "
		    "cannot be put back", tracefs_root(f->tracefs), failed);
	tracefs_unlock(f->tracefs);
}

static int
read_layout(struct ftrace *f, char why[FTRACE_WHY_MAX])
{
	size_t len;
	char *text = tracefs_read(f->tracefs, "events/header_page", &len);
	int rc;

	if (text == NULL) {
		snprintf(why, FTRACE_WHY_MAX, "%s/events/header_page: %s",
		    tracefs_root(f->tracefs), strerror(errno));
		return -1;
	}
	rc = page_layout_parse(&f->layout, text, len, why, FTRACE_WHY_MAX);
	free(text);
	if (rc == 0 && f->layout.page_size > PAGE_LAYOUT_BYTES_MAX) {
		snprintf(why, FTRACE_WHY_MAX, "the kernel's pages of records "
		    "have %u bytes, more than we read", f->layout.page_size);
		return -1;
	}
	return rc;
}

/* Without the file, texts that records refer to are missing. */
static int
read_strings(struct ftrace *f)
{
	size_t len = 0;
	char *text = tracefs_read(f->tracefs, "printk_formats", &len);

	f->strings = printk_strings_new(text != NULL ? text : "", len);
	free(text);
	return f->strings != NULL ? 0 : -1;
}

struct ftrace *
ftrace_new(struct loop *l, const struct ftrace_places *places,
    char why[FTRACE_WHY_MAX])
{
	struct ftrace *f;
	int error;

	if ((f = calloc(1, sizeof(*f))) == NULL)
		goto no_memory;
	f->loop = l;
	f->kallsyms = places->kallsyms != NULL ? places->kallsyms :
	    "/proc/kallsyms";
	TAILQ_INIT(&f->rings);
	if ((f->tracefs = tracefs_open(places->tracefs, why)) == NULL)
		goto fail;
	if (places->notes != NULL)
		snprintf(f->notes, sizeof(f->notes), "%s", places->notes);
	else if (changes_path(f->notes, sizeof(f->notes)) < 0)
		f->notes[0] = '\0';
	f->changes = changes_new(f->tracefs,
	    f->notes[0] != '\0' ? f->notes : NULL);
	if (f->changes == NULL)
		goto no_memory;
	recover(f);
	if (read_layout(f, why) < 0)
		goto fail;
	f->pages = malloc((size_t)BATCH_PAGES * f->layout.page_size);
	if (f->pages == NULL || read_strings(f) < 0)
		goto no_memory;
	return f;

no_memory:
	snprintf(why, FTRACE_WHY_MAX, "no memory");
fail:
	error = errno;
	ftrace_free(f);
	errno = error;
	return NULL;
}

void
ftrace_free(struct ftrace *f)
{
	if (f == NULL)
		return;
	changes_free(f->changes);
	tracefs_close(f->tracefs);
	printk_strings_free(f->strings);
	kernel_symbols_free(f->symbols);
	free(f->pages);
	free(f->lost);
	free(f);
}

bool
ftrace_reset(struct ftrace *f, char why[FTRACE_WHY_MAX])
{
	const size_t n = sizeof(as_after_boot) / sizeof(as_after_boot[0]);
	bool done = true;
	size_t i;

	if (!tracefs_lock(f->tracefs, why))
		return false;
	for (i = 0; i < n; i++) {
		/* Some kernels are built without some of the files. */
		if (tracefs_write(f->tracefs, as_after_boot[i][0],
		    as_after_boot[i][1]) == 0 || errno == ENOENT)
			continue;
		snprintf(why, FTRACE_WHY_MAX, "%s/%s cannot be set: %s",
		    tracefs_root(f->tracefs), as_after_boot[i][0],
		    strerror(errno));
		done = false;
	}
	tracefs_unlock(f->tracefs);
	return done;
}
