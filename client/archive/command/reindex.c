#include <inttypes.h>
#include <stdio.h>

#include "client/archive/command/actions.h"
#include "client/archive/index/archive_sync.h"
#include "client/text/progress.h"
#include "protos/plain_text.h"
#include "transport/base/human_numbers.h"

static void
progress_cb(void *arg, uint64_t done, uint64_t total)
{
	struct progress *p = arg;

	/* First come rows without a file, then files: a count of its own. */
	if (p->total != total)
		progress_begin(p, "segments looked at", total);
	progress_show(p, done);
}

static void
changed_cb(void *arg, const char *path, enum archive_change change,
    const char *why)
{
	if (change != ARCHIVE_TAKEN)
		progress_clear(arg);
	switch (change) {
	case ARCHIVE_TAKEN:
		break;
	case ARCHIVE_GONE:
		plain_printf(stdout, "gone: %s\n", path);
		break;
	case ARCHIVE_MOVED:
		plain_printf(stdout, "only in the store now: %s\n", path);
		break;
	case ARCHIVE_FAILED:
		plain_printf(stderr, "tributary archive: %s\n", why);
		break;
	case ARCHIVE_UNCHANGED:
		break;
	}
}

int
archive_reindex(const struct archive_open *a)
{
	struct progress progress = { .total = 0 };
	const struct archive_sync_ops ops = { .full = a->options->full,
		.changed = changed_cb, .progress = progress_cb,
		.arg = &progress };
	char err[ARCHIVE_ERROR_SIZE], bytes[HUMAN_TEXT_MAX];
	struct archive_sync_counts n;
	int rc;

	rc = archive_sync_all(a->catalog, a->folder, &ops, &n, err,
	    sizeof(err));
	progress_clear(&progress);
	if (rc < 0)
		return archive_refuse(err);
	printf("%" PRIu64 " segment%s read (%s), %" PRIu64 " unchanged, %" PRIu64
	    " gone", n.taken, human_s(n.taken), human_bytes(bytes, n.bytes),
	    n.unchanged, n.gone);
	if (n.failed > 0)
		printf(", %" PRIu64 " could not be read", n.failed);
	printf("\n");
	return n.failed > 0 ? ARCHIVE_NOT_DONE : ARCHIVE_DONE;
}
