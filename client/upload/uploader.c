#include "client/upload/uploader.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "client/archive/catalog.h"
#include "client/text/progress.h"
#include "client/upload/backlog.h"
#include "client/upload/lister.h"
#include "client/upload/s3/credentials.h"
#include "client/upload/s3/s3_http.h"
#include "client/upload/segment_sender.h"
#include "client/upload/upload_clock.h"
#include "client/upload/upload_queue.h"
#include "client/upload/upload_report.h"
#include "client/upload/upload_settings.h"
#include "transport/base/failure.h"
#include "transport/base/human_numbers.h"
#include "transport/base/log.h"

/* The catalogue is asked at least so often, should the kernel tell nothing. */
#define LOOK_MS 30000u
/* Segments come in swarms; one look for all of them. */
#define SETTLE_MS 100u
/* Failures of the store in a row that end an uploader_run_once(). */
#define ONCE_TRIES 5u
/* Segments that are sent before their rows go to a shared catalogue. */
#define LIST_EACH 16u
/* While there is no catalogue. */
#define NO_CATALOGUE_MS 1000u

struct uploader {
	const struct upload_settings *settings; /* borrowed */
	struct uploader_signals *signals;       /* borrowed */
	struct credentials credentials;
	struct s3_http *http;
	struct catalog *catalog; /* NULL: there is none yet */
	bool told_no_catalogue;
	struct upload_queue queue;
	struct backlog backlog;
	struct lister lister;
	int watch;               /* inotify, or -1 */
	int report_fd;
	Tributary__UploadReport report;
	char failure[512];
	/* For a person who waits for uploader_run_once(), in bytes. */
	struct progress progress;
	uint64_t to_send; /* when it began */
	uint64_t moved;   /* by the request under way */
	uint64_t parts;   /* by the requests before, for the same segment */
};

/* ---- what is told ---- */

static void
report(struct uploader *u, Tributary__UploadReport__State state)
{
	uint64_t now = upload_clock_ms(), pause;

	u->report.state = state;
	u->report.written_ns = upload_clock_wall_ns();
	pause = upload_queue_store_pause(&u->queue, now);
	if (pause == 0)
		pause = upload_queue_sweep_pause(&u->queue, now);
	u->report.has_next_try_ns = pause != UINT64_MAX;
	u->report.next_try_ns = u->report.written_ns + (pause == UINT64_MAX ?
	    0 : pause * 1000000);
	u->report.failures = u->queue.failures;
	u->report.failure = u->queue.failures > 0 ? u->failure : NULL;
	u->report.backlog = backlog_report(&u->backlog);
	u->report.listing = lister_report(&u->lister);
	upload_report_write(u->report_fd, &u->report);
}

static void
show_progress(struct uploader *u)
{
	uint64_t sent = u->parts + u->moved;
	uint64_t left = u->backlog.bytes;

	/* Bytes that went in vain go once more. */
	if (sent > u->report.path_bytes)
		sent = u->report.path_bytes;
	left = left > sent ? left - sent : 0;
	progress_show(&u->progress, u->to_send > left ? u->to_send - left : 0);
}

/* Called while a segment is sent; a large one takes several requests. */
static void
tick_cb(void *arg, uint64_t moved, uint64_t all)
{
	struct uploader *u = arg;

	(void)all;
	if (moved < u->moved)
		u->parts += u->moved;
	u->moved = moved;
	show_progress(u);
	report(u, TRIBUTARY__UPLOAD_REPORT__STATE__SENDING);
}

static void
count_backlog(struct uploader *u)
{
	char err[512];

	if (backlog_count(&u->backlog, u->catalog,
		u->settings->max_backlog_mb << 20, upload_clock_ms(), err,
		sizeof(err)) != 0)
		log_warn("cannot count what waits: %s", err);
}

/* ---- one segment ---- */

static void
mark_failed(struct uploader *u, const struct segment_row *row,
    const struct s3_sent *sent)
{
	const struct catalog_stored stored = {
		.state = SEGMENT_FAILED,
		.detail = sent->why,
		.at_ns = (int64_t)upload_clock_wall_ns(),
	};
	char err[512];

	if (catalog_set_stored(u->catalog, row->id, &stored, err,
		sizeof(err)) != 0)
		log_warn("%s: %s", row->path, err);
}

static void
segment_failed(struct uploader *u, const struct segment_row *row,
    const struct s3_sent *sent)
{
	if (!upload_queue_segment_failed(&u->queue, row->id, upload_clock_ms()))
		return;
	/* Gone by retention, most likely; its row follows. */
	if (sent->outcome == S3_ABSENT) {
		log_debug("%s: %s", row->path, sent->why);
		return;
	}
	log_warn("%s is not sent: %s", row->path, sent->why);
	mark_failed(u, row, sent);
}

static void
read_credentials(struct uploader *u)
{
	struct credentials fresh;
	char err[UPLOAD_ERROR_SIZE];

	if (credentials_load(&fresh, u->settings->credentials_file, err,
		sizeof(err)) != 0) {
		log_warn("%s; the former credentials stay", err);
		return;
	}
	credentials_done(&u->credentials);
	u->credentials = fresh;
}

static void
store_failed(struct uploader *u, const struct segment_row *row,
    const struct s3_sent *sent)
{
	const struct upload_failure failure = {
		.outcome = sent->outcome,
		.retry_after_ms = sent->retry_after_ms,
		.now_ms = upload_clock_ms(),
		.random = upload_clock_random(),
	};
	char pause[HUMAN_TEXT_MAX];
	bool tell = upload_queue_store_failed(&u->queue, row->id, &failure);

	memcpy(u->failure, sent->why, sizeof(u->failure));
	(void)human_ms(pause, upload_queue_store_pause(&u->queue,
	    failure.now_ms));
	if (tell)
		log_warn("%s is not sent yet: %s; next attempt in %s",
		    row->path, sent->why, pause);
	else
		log_debug("%s: %s; next attempt in %s", row->path, sent->why,
		    pause);
	if (sent->outcome == S3_DENIED)
		read_credentials(u);
}

static void
segment_sent(struct uploader *u, const struct segment_row *row,
    const struct s3_sent *sent)
{
	char bytes[HUMAN_TEXT_MAX];
	unsigned failures = upload_queue_sent(&u->queue, row->id);

	if (failures > 0) {
		progress_clear(&u->progress);
		log_info("the store takes segments again, after %u failure%s",
		    failures, human_s(failures));
	}
	log_debug("%s: %s sent", row->path, human_bytes(bytes, sent->bytes));
	u->report.sent_segments++;
	u->report.sent_bytes += sent->bytes;
	u->report.last_sent_ns = upload_clock_wall_ns();
	u->report.has_last_sent_ns = true;
	backlog_sent(&u->backlog, row->bytes);
}

static void
do_segment(struct uploader *u, const struct segment_row *row)
{
	const struct segment_sender sender = {
		.catalog = u->catalog,
		.http = u->http,
		.place = &u->settings->place,
		.folder = u->settings->archive_dir,
		.part_bytes = (uint64_t)u->settings->part_mb << 20,
		.lists = u->lister.url != NULL,
	};
	struct s3_sent sent;

	u->report.path = row->path;
	u->report.path_bytes = row->bytes;
	u->report.has_path_bytes = true;
	u->moved = u->parts = 0;
	show_progress(u);
	report(u, TRIBUTARY__UPLOAD_REPORT__STATE__SENDING);
	segment_send(&sender, row, &sent);
	if (sent.outcome != S3_OK)
		progress_clear(&u->progress);
	switch (sent.outcome) {
	case S3_OK:
		segment_sent(u, row, &sent);
		break;
	case S3_ABSENT:
	case S3_EXISTS:
	case S3_DAMAGED:
		segment_failed(u, row, &sent);
		break;
	case S3_BUSY:
	case S3_DENIED:
	case S3_REFUSED:
		store_failed(u, row, &sent);
		break;
	case S3_STOPPED:
		break;
	}
	u->report.path = NULL;
	u->report.has_path_bytes = false;
}

/* ---- all of them ---- */

static bool
may_send(const struct uploader *u)
{
	return !u->signals->stop && !u->signals->try_now &&
	    upload_queue_store_pause(&u->queue, upload_clock_ms()) == 0;
}

/* Sends until there is none behind the cursor, or the store has to be left. */
static void
send_all(struct uploader *u)
{
	const struct segment_row *row;
	unsigned n = 0;
	char err[512];
	int rc;

	while (may_send(u)) {
		rc = backlog_next(&u->backlog, u->catalog,
		    upload_queue_cursor(&u->queue, upload_clock_ms()), &row, err,
		    sizeof(err));
		if (rc < 0) {
			log_warn("cannot read the catalogue: %s", err);
			return;
		}
		if (rc == 0) {
			upload_queue_swept(&u->queue, upload_clock_ms(),
			    upload_clock_random());
			return;
		}
		do_segment(u, row);
		if (++n % LIST_EACH == 0)
			lister_run(&u->lister, u->catalog);
	}
}

static bool
has_catalogue(struct uploader *u)
{
	char err[512];

	if (u->catalog != NULL)
		return true;
	u->catalog = catalog_open(u->settings->archive_dir, CATALOG_WRITE, err,
	    sizeof(err));
	if (u->catalog != NULL && unlisted_prepare(u->catalog,
	    u->lister.url == NULL ? NULL : u->lister.name, err,
	    sizeof(err)) == 0) {
		lister_try_now(&u->lister, u->catalog);
		return true;
	}
	catalog_close(u->catalog);
	u->catalog = NULL;
	if (!u->told_no_catalogue)
		log_warn("%s: waiting for it", err);
	u->told_no_catalogue = true;
	return false;
}

static uint64_t
smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void
drain(int fd)
{
	char bytes[4096];

	while (fd >= 0 && read(fd, bytes, sizeof(bytes)) > 0)
		;
}

/* Waits for a change of the catalogue, a signal, or the time of a retry. */
static void
wait_for_work(struct uploader *u, uint64_t most_ms)
{
	struct pollfd p[] = {
		{ .fd = u->signals->wake, .events = POLLIN },
		{ .fd = u->watch, .events = POLLIN },
	};
	const struct timespec settle = { 0, SETTLE_MS * 1000000L };
	uint64_t now = upload_clock_ms();
	uint64_t pause = upload_queue_store_pause(&u->queue, now);
	uint64_t listing = lister_pause(&u->lister);

	/* While the store is left alone, new segments change nothing. */
	if (pause > 0)
		p[1].fd = -1;
	else
		pause = upload_queue_sweep_pause(&u->queue, now);
	if (poll(p, 2, (int)smaller(most_ms, smaller(pause, listing))) > 0 &&
	    p[1].revents != 0)
		(void)nanosleep(&settle, NULL);
	drain(u->watch);
	drain(u->signals->wake);
}

static void
obey_signals(struct uploader *u)
{
	if (!u->signals->try_now)
		return;
	u->signals->try_now = 0;
	read_credentials(u);
	upload_queue_try_now(&u->queue);
	lister_try_now(&u->lister, u->catalog);
}

static void
turn(struct uploader *u)
{
	obey_signals(u);
	if (!has_catalogue(u)) {
		report(u, TRIBUTARY__UPLOAD_REPORT__STATE__NO_CATALOGUE);
		wait_for_work(u, NO_CATALOGUE_MS);
		return;
	}
	count_backlog(u);
	send_all(u);
	lister_run(&u->lister, u->catalog);
	count_backlog(u);
	report(u, u->queue.failures > 0 || u->queue.sweep_ms != 0 ?
	    TRIBUTARY__UPLOAD_REPORT__STATE__WAITING :
	    TRIBUTARY__UPLOAD_REPORT__STATE__IDLE);
	wait_for_work(u, LOOK_MS);
}

void
uploader_run(struct uploader *u)
{
	while (!u->signals->stop)
		turn(u);
}

/* False: rows wait for the shared catalogue. */
static bool
list_once(struct uploader *u)
{
	while (!u->signals->stop) {
		lister_run(&u->lister, u->catalog);
		if (lister_pause(&u->lister) == UINT64_MAX ||
		    u->lister.failures >= ONCE_TRIES)
			break;
		wait_for_work(u, LOOK_MS);
		obey_signals(u);
	}
	return u->lister.count.waiting == 0 && u->lister.count.refused == 0;
}

bool
uploader_run_once(struct uploader *u)
{
	if (!has_catalogue(u))
		return false;
	count_backlog(u);
	u->to_send = u->backlog.bytes;
	progress_begin_bytes(&u->progress, "sent", u->to_send);
	while (!u->signals->stop) {
		count_backlog(u);
		send_all(u);
		if (upload_queue_store_pause(&u->queue, upload_clock_ms()) == 0 ||
		    u->queue.failures >= ONCE_TRIES)
			break;
		wait_for_work(u, LOOK_MS);
		obey_signals(u);
	}
	progress_clear(&u->progress);
	u->backlog.counted_ms = 0;
	count_backlog(u);
	return list_once(u) && u->backlog.counted_ms != 0 &&
	    u->backlog.segments == 0;
}

/* ---- the beginning and the end ---- */

static int
begin(struct uploader *u, char *err, size_t err_size)
{
	const struct upload_settings *s = u->settings;
	const struct s3_http_setup setup = {
		.place = &s->place,
		.credentials = &u->credentials,
		.ca_file = s->ca_file,
		.max_bytes_per_s = s->max_kb_per_s * 1024,
		.stall_ms = s->stall_s * 1000ull,
		.stop = &u->signals->stop,
		.tick = tick_cb,
		.tick_arg = u,
	};

	u->lister.url = s->catalog;
	if (s->catalog != NULL && postgres_url_name(s->catalog, u->lister.name,
	    err, err_size) != 0)
		return -1;
	u->report_fd = upload_report_open(s->archive_dir, err, err_size);
	if (u->report_fd < 0 || credentials_load(&u->credentials,
		s->credentials_file, err, err_size) != 0)
		return -1;
	if ((u->http = s3_http_new(&setup)) == NULL)
		return FAILURE(err, err_size, "no memory");
	/* Without a watch the catalogue is looked at now and then. */
	u->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (u->watch >= 0)
		(void)inotify_add_watch(u->watch, s->archive_dir,
		    IN_MODIFY | IN_CREATE);
	return 0;
}

struct uploader *
uploader_new(const struct upload_settings *settings,
    struct uploader_signals *signals, char *err, size_t err_size)
{
	struct uploader *u = calloc(1, sizeof(*u));

	if (u == NULL) {
		snprintf(err, err_size, "no memory");
		return NULL;
	}
	u->settings = settings;
	u->signals = signals;
	u->report_fd = u->watch = -1;
	u->queue.pace = u->lister.pace = (struct upload_pace){
		settings->min_retry_ms, settings->max_retry_ms };
	u->lister.stop = &signals->stop;
	tributary__upload_report__init(&u->report);
	u->report.url = settings->url;
	u->report.has_pid = u->report.has_state = true;
	u->report.has_started_ns = u->report.has_written_ns = true;
	u->report.has_sent_segments = u->report.has_sent_bytes = true;
	u->report.has_failures = true;
	u->report.pid = (int32_t)getpid();
	u->report.started_ns = upload_clock_wall_ns();
	if (begin(u, err, err_size) == 0)
		return u;
	uploader_free(u);
	return NULL;
}

void
uploader_free(struct uploader *u)
{
	if (u == NULL)
		return;
	backlog_done(&u->backlog);
	lister_done(&u->lister);
	if (u->catalog != NULL)
		catalog_close(u->catalog);
	s3_http_free(u->http);
	credentials_done(&u->credentials);
	if (u->watch >= 0)
		close(u->watch);
	if (u->report_fd >= 0)
		close(u->report_fd);
	free(u);
}
