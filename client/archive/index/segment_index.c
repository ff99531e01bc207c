#include "client/archive/index/segment_index.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/archive/index/archive_files.h"
#include "client/archive/index/segment_contents.h"
#include "client/archive/segment_entry.h"
#include "client/inspect/report/inspection.h"
#include "client/inspect/report/session_log.h"
#include "client/inspect/report/verdict.h"
#include "client/inspect/scan/trace_window.h"
#include "client/trace/trace_losses.h"
#include "client/trace/trace_summary.h"
#include "protos/trace_config.pb-c.h"
#include "transport/base/failure.h"

/* A file that is hashed as it is read. */
struct hashed_file {
	int fd;
	EVP_MD_CTX *hash;
};

static ssize_t
read_hashed(void *arg, uint8_t *buf, size_t len)
{
	struct hashed_file *h = arg;
	ssize_t n;

	do
		n = read(h->fd, buf, len);
	while (n < 0 && errno == EINTR);
	if (n > 0 && EVP_DigestUpdate(h->hash, buf, (size_t)n) != 1) {
		errno = ENOMEM;
		return -1;
	}
	return n;
}

static int
copy(char **out, const char *text)
{
	*out = strdup(text == NULL ? "" : text);
	return *out == NULL ? -1 : 0;
}

static int
take_verdict(struct segment_entry *e, const struct inspection *i)
{
	struct inspect_verdict v;

	inspect_verdict_make(&v, i);
	if (copy(&e->verdict, inspect_verdict_word(v.kind)) < 0)
		return -1;
	return copy(&e->problem, v.kind == INSPECT_WHOLE ? "" : v.text);
}

static void
put_number(uint8_t *out, uint64_t v)
{
	int i;

	for (i = 0; i < 8; i++)
		out[i] = (uint8_t)(v >> (56 - 8 * i));
}

static int
take_session(struct segment_entry *e, const struct inspection *i)
{
	const struct session_log *log = inspection_log(i);
	const char *name = log->config == NULL ? NULL :
	    log->config->unique_session_name;

	if (log->has_uuid) {
		e->has_uuid = true;
		put_number(e->uuid, log->uuid_msb);
		put_number(e->uuid + 8, log->uuid_lsb);
	}
	if (e->machine == NULL && copy(&e->machine, "") < 0)
		return -1;
	return e->recording == NULL ? copy(&e->recording, name) : 0;
}

static int
take_data_sources(struct segment_entry *e, struct inspection *i)
{
	const struct trace_summary *s = inspection_summary(i);
	const char *const *names;
	size_t k, n = trace_summary_data_sources(s, &names);

	if (n > 0 && (e->data_sources = calloc(n, sizeof(char *))) == NULL)
		return -1;
	for (k = 0; k < n; k++) {
		if (copy(&e->data_sources[k], names[k]) < 0)
			return -1;
		e->n_data_sources++;
	}
	return 0;
}

static const char *
place_text(enum trace_loss_place place)
{
	switch (place) {
	case TRACE_LOSS_IN_SESSION:
		return "session";
	case TRACE_LOSS_BY_RELAY:
		return "relay";
	case TRACE_LOSS_BY_COLLECTOR:
		return "collector";
	case TRACE_LOSS_IN_KERNEL:
		return "kernel";
	}
	return "";
}

static int
add_loss(struct segment_entry *e, const struct segment_loss *loss,
    const char *text, const char *cause)
{
	struct segment_loss *l = &e->losses[e->n_losses++];

	*l = *loss;
	return copy(&l->text, text) < 0 || copy(&l->cause, cause) < 0 ? -1 : 0;
}

/* Numbers of the catalogue are signed, and a forged trace says any. */
static void
add_lost(struct segment_entry *e, uint64_t n)
{
	e->lost = n > INT64_MAX - e->lost ? INT64_MAX : e->lost + n;
}

static int
add_counted(struct segment_entry *e, const struct trace_loss *l)
{
	bool has_machine = l->place != TRACE_LOSS_IN_SESSION;
	struct segment_loss loss = {
		.unit = l->unit, .place = place_text(l->place),
		.count = l->count, .bytes = l->bytes, .buffer = l->buffer,
		.machine_id = has_machine ? (int64_t)l->machine : -1,
		.at_least = l->at_least || l->how_much_unknown,
	};
	char text[512];

	/* A flush that timed out has perhaps lost nothing. */
	if (strcmp(l->unit, "flush") != 0)
		add_lost(e, l->count);
	return add_loss(e, &loss, trace_loss_text(text, sizeof(text), l),
	    l->cause);
}

/* Marks in packets count as lost where the statistics tell of nothing. */
static int
add_gaps(struct segment_entry *e, const struct trace_totals *t)
{
	struct segment_loss loss = { .unit = "gap", .place = "packets",
		.buffer = -1, .machine_id = -1, .at_least = true };
	char text[256];
	unsigned bit;

	if (e->lost == 0)
		add_lost(e, t->gaps);
	for (bit = 0; bit < TRACE_SUMMARY_LOSS_BITS; bit++) {
		if (t->gaps_by_reason[bit] == 0)
			continue;
		loss.count = t->gaps_by_reason[bit];
		snprintf(text, sizeof(text), "%llu marked gap%s: %s",
		    (unsigned long long)loss.count, loss.count == 1 ? "" : "s",
		    trace_summary_reason(bit));
		if (add_loss(e, &loss, text, trace_summary_reason(bit)) < 0)
			return -1;
	}
	return 0;
}

static int
take_losses(struct segment_entry *e, struct inspection *i)
{
	struct trace_summary *s = inspection_summary(i);
	size_t k, n = trace_summary_losses(s, NULL, 0);
	struct trace_loss *l = calloc(n + 1, sizeof(*l));
	int rc = -1;

	e->losses = calloc(n + TRACE_SUMMARY_LOSS_BITS, sizeof(*e->losses));
	if (l == NULL || e->losses == NULL)
		goto out;
	n = trace_summary_losses(s, l, n);
	for (k = 0; k < n; k++) {
		if (add_counted(e, &l[k]) < 0)
			goto out;
	}
	rc = add_gaps(e, trace_summary_totals(s));

out:
	free(l);
	return rc;
}

/* Reads what the scan left: all of the file counts for the checksum. */
static int
read_rest(struct hashed_file *h)
{
	uint8_t rest[65536];
	ssize_t n;

	while ((n = read_hashed(h, rest, sizeof(rest))) > 0)
		;
	return n < 0 ? -1 : 0;
}

static int
inspect(struct segment_entry *e, struct inspection *i, struct hashed_file *h,
    char *err, size_t err_size)
{
	struct segment_contents c;
	struct trace_window w;
	int rc;

	segment_contents_init(&c, e, i);
	trace_window_init(&w, read_hashed, h);
	rc = inspection_run(i, &w, e->bytes, err, err_size);
	trace_window_done(&w);
	if (rc == 0 && read_rest(h) < 0)
		rc = FAILURE(err, err_size, "%s", strerror(errno));
	if (rc == 0 && (segment_contents_finish(&c) < 0 ||
	    take_verdict(e, i) < 0 || take_session(e, i) < 0 ||
	    take_data_sources(e, i) < 0 || take_losses(e, i) < 0))
		rc = FAILURE(err, err_size, "out of memory");
	segment_contents_done(&c);
	return rc;
}

static int
describe(struct segment_entry *e, int fd, char *err, size_t err_size)
{
	struct hashed_file h = { fd, EVP_MD_CTX_new() };
	struct inspection *i = inspection_new();
	unsigned len = SEGMENT_SHA256;
	int rc = -1;

	if (i == NULL || h.hash == NULL ||
	    EVP_DigestInit_ex(h.hash, EVP_sha256(), NULL) != 1)
		snprintf(err, err_size, "out of memory");
	else
		rc = inspect(e, i, &h, err, err_size);
	if (rc == 0 && EVP_DigestFinal_ex(h.hash, e->sha256, &len) != 1)
		rc = FAILURE(err, err_size, "SHA-256 failed");
	inspection_free(i);
	EVP_MD_CTX_free(h.hash);
	return rc;
}

static int
open_file(int folder, const char *path, struct stat *st)
{
	int fd = openat(folder, path,
	    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 || fstat(fd, st) < 0)
		goto fail;
	if (S_ISREG(st->st_mode))
		return fd;
	errno = S_ISDIR(st->st_mode) ? EISDIR : EINVAL;

fail:
	if (fd >= 0)
		close(fd);
	return -1;
}

int
segment_index_file(struct segment_entry *out, int folder, const char *path,
    char *err, size_t err_size)
{
	struct stat before, after;
	int fd, rc = -1;

	if ((fd = open_file(folder, path, &before)) < 0 && errno == ENOENT)
		return 1;
	if (fd < 0)
		return FAILURE(err, err_size, "%s: %s", path, errno == ELOOP ?
		    "is a link, not a file" : strerror(errno));
	out->bytes = (uint64_t)before.st_size;
	out->mtime_ns = archive_files_mtime(&before);
	if (copy(&out->path, path) < 0) {
		snprintf(err, err_size, "out of memory");
	} else if (describe(out, fd, err, err_size) < 0) {
		char why[256];

		snprintf(why, sizeof(why), "%s", err);
		snprintf(err, err_size, "%s: %s", path, why);
	} else if (fstat(fd, &after) < 0 ||
	    after.st_size != before.st_size ||
	    archive_files_mtime(&after) != archive_files_mtime(&before)) {
		snprintf(err, err_size, "%s: changed while it was read", path);
	} else {
		rc = 0;
	}
	close(fd);
	return rc;
}
