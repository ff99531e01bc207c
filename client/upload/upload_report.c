#include "client/upload/upload_report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/text/time_text.h"
#include "protos/json_out.h"
#include "protos/plain_text.h"
#include "transport/base/failure.h"
#include "transport/base/human_numbers.h"

/*
 * The message behind its length.  Always as many bytes, in one call, so that a
 * reader gets the one or the other.
 */
#define FILE_SIZE 8192u

static int
open_file(const char *folder, int flags)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/" UPLOAD_REPORT_FILE, folder);

	if (n < 0 || (size_t)n >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0644);
}

int
upload_report_open(const char *folder, char *err, size_t err_size)
{
	int fd = open_file(folder, O_RDWR | O_CREAT);

	if (fd < 0)
		return FAILURE(err, err_size, "cannot write into the archive "
		    "%s: %s", folder, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	close(fd);
	return FAILURE(err, err_size, "another tributary-upload sends from the "
	    "archive %s: one is enough", folder);
}

void
upload_report_write(int fd, const Tributary__UploadReport *report)
{
	uint8_t bytes[FILE_SIZE] = { 0 };
	uint32_t len = (uint32_t)tributary__upload_report__get_packed_size(
	    report);

	if (len > sizeof(bytes) - sizeof(len))
		return;
	memcpy(bytes, &len, sizeof(len));
	(void)tributary__upload_report__pack(report, bytes + sizeof(len));
	if (pwrite(fd, bytes, sizeof(bytes), 0) < 0)
		return;
}

/* ---- for people ---- */

/* Column where values begin. */
#define LABEL "%-9s "

static const char *
state_text(const Tributary__UploadReport *r, char next[HUMAN_TEXT_MAX],
    uint64_t now_ns)
{
	switch (r->state) {
	case TRIBUTARY__UPLOAD_REPORT__STATE__IDLE:
		return "the store has everything";
	case TRIBUTARY__UPLOAD_REPORT__STATE__SENDING:
		return "sending";
	case TRIBUTARY__UPLOAD_REPORT__STATE__WAITING:
		(void)human_ms(next, r->next_try_ns > now_ns ?
		    (r->next_try_ns - now_ns) / 1000000 : 0);
		return "waiting to try again";
	case TRIBUTARY__UPLOAD_REPORT__STATE__NO_CATALOGUE:
		return "waiting for the archive's catalogue: does "
		    "tributary-archiver run?";
	case TRIBUTARY__UPLOAD_REPORT__STATE__STATE_UNSPECIFIED:
	default: /* protobuf-c adds an enumerator of its own */
		return "?";
	}
}

static void
print_backlog(const Tributary__UploadReport__Backlog *b, uint64_t now_ns)
{
	char count[HUMAN_TEXT_MAX], bytes[HUMAN_TEXT_MAX], age[HUMAN_TEXT_MAX];

	if (b == NULL || b->segments == 0) {
		plain_printf(stdout, LABEL "nothing waits\n", "backlog");
		return;
	}
	plain_printf(stdout, LABEL "%s segment%s, %s, the oldest of %s ago%s\n",
	    "backlog", human_count(count, b->segments), human_s(b->segments),
	    human_bytes(bytes, b->bytes), time_text_ago(age, b->oldest_ns,
	    now_ns), b->over_limit ? "; more than max_backlog_mb" : "");
	if (b->failed > 0)
		plain_printf(stdout, LABEL "%s of them could not be sent, for "
		    "reasons of their own: see the log\n", "",
		    human_count(count, b->failed));
}

static void
print_listing(const Tributary__UploadReport__Listing *l)
{
	char count[HUMAN_TEXT_MAX];

	if (l == NULL)
		return;
	plain_printf(stdout, LABEL "%s\n", "catalogue", l->catalog != NULL ?
	    l->catalog : "?");
	if (l->waiting == 0 && l->refused == 0)
		plain_printf(stdout, LABEL "has all rows\n", "");
	if (l->waiting > 0)
		plain_printf(stdout, LABEL "%s row%s wait\n", "",
		    human_count(count, l->waiting), human_s(l->waiting));
	if (l->refused > 0)
		plain_printf(stdout, LABEL "%s row%s not taken, for reasons of "
		    "their own: see the log\n", "", human_count(count,
		    l->refused), human_s(l->refused));
	if (l->failures > 0 && l->failure != NULL)
		plain_printf(stdout, LABEL "failed %u time%s in a row: %s\n",
		    "", l->failures, human_s(l->failures), l->failure);
}

static void
print_report(const Tributary__UploadReport *r, uint64_t now_ns)
{
	char next[HUMAN_TEXT_MAX] = "", count[HUMAN_TEXT_MAX];
	char bytes[HUMAN_TEXT_MAX], ago[HUMAN_TEXT_MAX];

	plain_printf(stdout, LABEL "%s\n", "store", r->url != NULL ? r->url :
	    "?");
	plain_printf(stdout, LABEL "%s%s%s\n", "", state_text(r, next, now_ns),
	    *next != '\0' ? " in " : "", next);
	if (r->failures > 0 && r->failure != NULL)
		plain_printf(stdout, LABEL "failed %u time%s in a row: %s\n",
		    "", r->failures, human_s(r->failures), r->failure);
	if (r->path != NULL)
		plain_printf(stdout, LABEL "%s (%s)\n", "segment", r->path,
		    human_bytes(bytes, r->path_bytes));
	plain_printf(stdout, LABEL "%s segment%s, %s", "sent",
	    human_count(count, r->sent_segments), human_s(r->sent_segments),
	    human_bytes(bytes, r->sent_bytes));
	if (r->last_sent_ns != 0)
		plain_printf(stdout, ", the last %s ago", time_text_ago(ago,
		    r->last_sent_ns, now_ns));
	plain_printf(stdout, "; running for %s\n", time_text_ago(ago,
	    r->started_ns, now_ns));
	print_backlog(r->backlog, now_ns);
	print_listing(r->listing);
}

/* NULL: no uploader has it locked, or it says nothing yet. */
static Tributary__UploadReport *
read_report(int fd)
{
	uint8_t bytes[FILE_SIZE];
	uint32_t len;

	if (flock(fd, LOCK_SH | LOCK_NB) == 0 ||
	    pread(fd, bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return NULL;
	memcpy(&len, bytes, sizeof(len));
	if (len > sizeof(bytes) - sizeof(len))
		return NULL;
	return tributary__upload_report__unpack(NULL, len,
	    bytes + sizeof(len));
}

int
upload_report_show(const char *folder, bool json)
{
	struct json_out j = { .out = stdout };
	Tributary__UploadReport *report = NULL;
	struct timespec now;
	int fd = open_file(folder, O_RDONLY);

	if (fd >= 0) {
		report = read_report(fd);
		close(fd);
	}
	if (report == NULL) {
		plain_printf(stderr, "tributary-upload: no uploader runs in "
		    "the archive %s\n", folder);
		return 1;
	}
	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (json) {
		json_message(&j, NULL, &report->base);
		putchar('\n');
	} else {
		print_report(report, (uint64_t)now.tv_sec * 1000000000ull +
		    (uint64_t)now.tv_nsec);
	}
	tributary__upload_report__free_unpacked(report, NULL);
	return 0;
}
