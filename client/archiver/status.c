#include "client/archiver/status.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/archiver/keeper.h"
#include "client/archiver/own_folder.h"
#include "client/archiver/settings.h"
#include "protos/archiver_report.pb-c.h"
#include "protos/fields.h"
#include "protos/json_out.h"
#include "protos/plain_text.h"
#include "protos/utf8.h"
#include "transport/base/human_numbers.h"
#include "transport/wire/pb_writer.h"

/* ---- the archiver's side ---- */

static void
put_text(struct pb_writer *w, uint32_t field, const char *text)
{
	char shown[1024];

	utf8_escape(shown, sizeof(shown), text, strlen(text), "");
	pb_put_string(w, field, shown);
}

static void
put_deletions(struct pb_writer *w, const struct keeper_view *v)
{
	size_t i, mark;

	for (i = 0; i < KEEPER_CAUSES; i++) {
		if (v->deleted[i].segments == 0)
			continue;
		mark = pb_nest_begin(w, ArchiverReport_deleted);
		pb_put_string(w, ArchiverDeletions_cause,
		    keeper_cause_text(i));
		pb_put_uint(w, ArchiverDeletions_segments,
		    v->deleted[i].segments);
		pb_put_uint(w, ArchiverDeletions_bytes, v->deleted[i].bytes);
		pb_nest_end(w, mark);
	}
}

static void
put_view(struct pb_writer *w, const struct keeper_view *v)
{
	size_t i;

	pb_put_uint(w, ArchiverReport_segments, v->segments);
	pb_put_uint(w, ArchiverReport_bytes, v->bytes);
	pb_put_uint(w, ArchiverReport_pinned, v->pinned);
	pb_put_uint(w, ArchiverReport_waiting_for_upload, v->waiting);
	pb_put_uint(w, ArchiverReport_free_bytes, v->free);
	pb_put_uint(w, ArchiverReport_min_free_bytes, v->min_free);
	pb_put_uint(w, ArchiverReport_catalogued, v->catalogued);
	pb_put_uint(w, ArchiverReport_forgotten, v->forgotten);
	pb_put_uint(w, ArchiverReport_recovered, v->recovered);
	pb_put_uint(w, ArchiverReport_failures, v->failures);
	if (v->failure[0] != '\0')
		put_text(w, ArchiverReport_last_failure, v->failure);
	put_deletions(w, v);
	for (i = 0; i < v->n_excesses; i++)
		put_text(w, ArchiverReport_not_kept, v->excesses[i]);
	for (i = 0; i < v->n_next; i++)
		put_text(w, ArchiverReport_next, v->next[i]);
}

size_t
status_make(const struct status_facts *facts, const struct keeper_view *view,
    uint8_t *buf, size_t size)
{
	struct pb_writer w;
	size_t len = 0;

	pb_writer_init(&w);
	pb_put_string(&w, ArchiverReport_version, TRIBUTARY_VERSION);
	pb_put_int(&w, ArchiverReport_pid, getpid());
	pb_put_uint(&w, ArchiverReport_running_ms, facts->running_ms);
	put_text(&w, ArchiverReport_archive_dir, facts->folder);
	pb_put_uint(&w, ArchiverReport_to_look_at, facts->to_look_at);
	pb_put_uint(&w, ArchiverReport_unwatched, facts->unwatched);
	put_view(&w, view);
	if (!w.failed && w.len <= size) {
		memcpy(buf, w.data, w.len);
		len = w.len;
	}
	pb_writer_done(&w);
	return len;
}

/* ---- for people ---- */

static void
print_disk(const Tributary__ArchiverReport *r)
{
	char free_text[HUMAN_TEXT_MAX], least[HUMAN_TEXT_MAX];
	size_t i;

	printf("disk      %s free", human_bytes(free_text, r->free_bytes));
	if (r->min_free_bytes > 0)
		printf(", is to have %s", human_bytes(least,
		    r->min_free_bytes));
	putchar('\n');
	for (i = 0; i < r->n_next; i++)
		printf("%s %s\n", i == 0 ? "next to go" : "          ",
		    r->next[i]);
}

static void
print_deleted(const Tributary__ArchiverReport *r)
{
	char n[HUMAN_TEXT_MAX], bytes[HUMAN_TEXT_MAX];
	size_t i;

	for (i = 0; i < r->n_deleted; i++)
		printf("deleted   %s segment%s (%s) by %s\n",
		    human_count(n, r->deleted[i]->segments),
		    human_s(r->deleted[i]->segments),
		    human_bytes(bytes, r->deleted[i]->bytes),
		    r->deleted[i]->cause);
	for (i = 0; i < r->n_not_kept; i++)
		printf("not kept  %s\n", r->not_kept[i]);
}

static void
print(const Tributary__ArchiverReport *r)
{
	char n[HUMAN_TEXT_MAX], bytes[HUMAN_TEXT_MAX], pinned[HUMAN_TEXT_MAX];

	printf("archive   %s (process %d, for %s)\n", r->archive_dir, r->pid,
	    human_ms(n, r->running_ms));
	printf("segments  %s, %s; %s pinned", human_count(n, r->segments),
	    human_bytes(bytes, r->bytes), human_count(pinned, r->pinned));
	if (r->waiting_for_upload > 0)
		printf("; %s not uploaded", human_count(n,
		    r->waiting_for_upload));
	putchar('\n');
	print_disk(r);
	printf("since the start  %s catalogued, %s gone",
	    human_count(n, r->catalogued), human_count(bytes, r->forgotten));
	if (r->recovered > 0)
		printf(", %s closed after a crash",
		    human_count(n, r->recovered));
	putchar('\n');
	print_deleted(r);
	if (r->to_look_at > 0)
		printf("waiting   %s to be looked at\n",
		    human_count(n, r->to_look_at));
	if (r->unwatched > 0)
		printf("not watched  %s folder%s: raise "
		    "fs.inotify.max_user_watches\n",
		    human_count(n, r->unwatched), human_s(r->unwatched));
	if (r->failures > 0)
		printf("failures  %s, the last: %s\n",
		    human_count(n, r->failures), r->last_failure);
}

int
status_show(const char *folder, bool json)
{
	static uint8_t answer[OWN_FOLDER_ANSWER_MAX];
	struct json_out j = { .out = stdout };
	Tributary__ArchiverReport *r;
	char err[ARCHIVER_ERROR_SIZE];
	long len;

	if ((len = own_folder_ask(folder, answer, err, sizeof(err))) < 0) {
		plain_printf(stderr, "tributary-archiver: %s\n", err);
		return 1;
	}
	r = tributary__archiver_report__unpack(NULL, (size_t)len, answer);
	if (r == NULL || r->archive_dir == NULL) {
		fprintf(stderr, "tributary-archiver: the archiver's answer "
		    "makes no sense; it is perhaps of another version\n");
		if (r != NULL)
			tributary__archiver_report__free_unpacked(r, NULL);
		return 1;
	}
	if (json) {
		json_message(&j, NULL, &r->base);
		putchar('\n');
	} else {
		print(r);
	}
	tributary__archiver_report__free_unpacked(r, NULL);
	return 0;
}
