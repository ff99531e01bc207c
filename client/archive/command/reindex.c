#include <inttypes.h>
#include <stdio.h>

#include "client/archive/command/actions.h"
#include "client/archive/index/archive_sync.h"
#include "protos/plain_text.h"
#include "transport/base/human_numbers.h"

static void
changed_cb(void *arg, const char *path, enum archive_change change,
    const char *why)
{
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
	const struct archive_sync_ops ops = { .full = a->options->full,
		.changed = changed_cb };
	char err[ARCHIVE_ERROR_SIZE], bytes[HUMAN_TEXT_MAX];
	struct archive_sync_counts n;

	if (archive_sync_all(a->catalog, a->folder, &ops, &n, err,
	    sizeof(err)) < 0)
		return archive_refuse(err);
	printf("%" PRIu64 " segment%s read (%s), %" PRIu64 " unchanged, %" PRIu64
	    " gone", n.taken, human_s(n.taken), human_bytes(bytes, n.bytes),
	    n.unchanged, n.gone);
	if (n.failed > 0)
		printf(", %" PRIu64 " could not be read", n.failed);
	printf("\n");
	return n.failed > 0 ? ARCHIVE_NOT_DONE : ARCHIVE_DONE;
}
