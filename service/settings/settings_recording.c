#include "service/settings/settings_recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protos/utf8.h"
#include "service/settings/settings.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"

#define NAME_MAX_BYTES  64u
#define WORDS_MAX       64u
#define EVERY_LEAST_MS  1000u
#define SIZE_LEAST_KB   64u
#define BEFORE_MS       30000u
#define BEFORE_LEAST_MS 1000u
#define AFTER_MS        10000u
/* Bounds that leave room in 63 bits for what is made of the numbers. */
#define EVERY_MOST_MS   (UINT64_C(31) * 24 * 3600 * 1000)
#define SIZE_MOST_KB    (UINT64_C(1) << 50)
#define KEEP_MOST_MB    (UINT64_C(1) << 40)
#define KEEP_MOST_HOURS (UINT64_C(24) * 366 * 100)

static void
words_done(struct word_list *w)
{
	size_t i;

	for (i = 0; i < w->n; i++)
		free(w->words[i]);
	free(w->words);
}

static void
free_recording(struct recording_setting *r)
{
	free(r->name);
	free(r->config_path);
	free(r->file_pattern);
	words_done(&r->machines);
	words_done(&r->triggers);
}

void
settings_recordings_done(struct settings *s)
{
	size_t i;

	for (i = 0; i < s->n_recordings; i++)
		free_recording(&s->recordings[i]);
	free(s->recordings);
	free(s->archive_dir);
}

static int
check_name(const struct settings *s, const char *name, char *err,
    size_t err_size)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	char shown[80];
	size_t i;

	if (name == NULL || *name == '\0')
		return FAILURE(err, err_size, "a recording has no `name`");
	log_escape(shown, sizeof(shown), name, strlen(name));
	if (*name == '.' || strlen(name) > NAME_MAX_BYTES ||
	    name[strspn(name, good)] != '\0')
		return FAILURE(err, err_size, "\"%s\" cannot be the name of a "
		    "recording, as files are named after it: use at most %u "
		    "letters, digits, -, _ and ., which may not be first",
		    shown, NAME_MAX_BYTES);
	for (i = 0; i < s->n_recordings; i++)
		if (strcmp(s->recordings[i].name, name) == 0)
			return FAILURE(err, err_size, "there are two "
			    "recordings \"%s\": name one of them differently",
			    shown);
	if (s->n_recordings >= SETTINGS_RECORDINGS_MAX)
		return FAILURE(err, err_size, "more than %u recordings",
		    SETTINGS_RECORDINGS_MAX);
	return 0;
}

/* Names that the recording waits for or takes: what names them in err. */
static int
check_words(const char *what, char *const *words, size_t n, char *err,
    size_t err_size)
{
	size_t i;

	if (n > WORDS_MAX)
		return FAILURE(err, err_size, "%s: more than %u", what,
		    WORDS_MAX);
	for (i = 0; i < n; i++)
		if (words[i][0] == '\0')
			return FAILURE(err, err_size, "%s: an empty name fits "
			    "none; leave it out", what);
	return 0;
}

static int
check_rotate(const Tributary__Rotate *r, char *err, size_t err_size)
{
	if (r->has_every_ms && (r->every_ms < EVERY_LEAST_MS ||
	    r->every_ms > EVERY_MOST_MS))
		return FAILURE(err, err_size, "rotate.every_ms is from %u to "
		    "%llu (31 days)", EVERY_LEAST_MS,
		    (unsigned long long)EVERY_MOST_MS);
	if (r->has_size_kb && (r->size_kb < SIZE_LEAST_KB ||
	    r->size_kb > SIZE_MOST_KB))
		return FAILURE(err, err_size, "rotate.size_kb is from %u to "
		    "%llu", SIZE_LEAST_KB, (unsigned long long)SIZE_MOST_KB);
	return check_words("rotate.at_trigger", r->at_trigger, r->n_at_trigger,
	    err, err_size);
}

static int
check_flight(const Tributary__Recording *r, char *err, size_t err_size)
{
	const Tributary__Flight *f = r->flight;

	if (r->rotate != NULL || r->has_split)
		return FAILURE(err, err_size, "`flight` and `rotate` or "
		    "`split` exclude each other: each trigger of a flight "
		    "recorder writes one segment");
	if (f->n_at_trigger == 0)
		return FAILURE(err, err_size, "flight: it has no `at_trigger`, "
		    "so nothing would ever be written");
	if (f->has_before_ms && f->before_ms < BEFORE_LEAST_MS)
		return FAILURE(err, err_size, "flight.before_ms is at least "
		    "%u", BEFORE_LEAST_MS);
	return check_words("flight.at_trigger", f->at_trigger, f->n_at_trigger,
	    err, err_size);
}

static int
check_keep(const Tributary__Keep *k, char *err, size_t err_size)
{
	if ((!k->has_size_mb ||
	    (k->size_mb > 0 && k->size_mb <= KEEP_MOST_MB)) &&
	    (!k->has_hours || (k->hours > 0 && k->hours <= KEEP_MOST_HOURS)))
		return 0;
	return FAILURE(err, err_size, "keep: size_mb is from 1 to %llu, hours "
	    "from 1 to %llu; leave out the one that has no limit",
	    (unsigned long long)KEEP_MOST_MB,
	    (unsigned long long)KEEP_MOST_HOURS);
}

static int
check_pattern(const char *pattern, char *err, size_t err_size)
{
	size_t i, n, len = strlen(pattern);

	for (i = 0; i < len; i += n)
		if ((n = utf8_printable(pattern + i, len - i)) == 0)
			break;
	if (len > 0 && i == len && pattern[0] != '/')
		return 0;
	return FAILURE(err, err_size, "file_pattern is a path below "
	    "archive_dir, of printable characters");
}

static int
check(const struct settings *s, const Tributary__Recording *r, char *err,
    size_t err_size)
{
	if (check_name(s, r->name, err, err_size) != 0)
		return -1;
	if (r->config_file == NULL || r->config_file[0] == '\0')
		return FAILURE(err, err_size, "%s has no `config_file`, the "
		    "trace config that it records with", r->name);
	if (check_words("machines", r->machines, r->n_machines, err,
	    err_size) != 0)
		return -1;
	if (r->file_pattern != NULL &&
	    check_pattern(r->file_pattern, err, err_size) != 0)
		return -1;
	if (r->flight != NULL && check_flight(r, err, err_size) != 0)
		return -1;
	if (r->rotate != NULL && check_rotate(r->rotate, err, err_size) != 0)
		return -1;
	return r->keep != NULL ? check_keep(r->keep, err, err_size) : 0;
}

static int
copy_words(struct word_list *to, char *const *from, size_t n)
{
	if ((to->words = calloc(n + 1, sizeof(*to->words))) == NULL)
		return -1;
	for (; to->n < n; to->n++)
		if ((to->words[to->n] = strdup(from[to->n])) == NULL)
			return -1;
	return 0;
}

/* The path of a file that is named beside another. */
static char *
path_beside(const char *other, const char *name)
{
	const char *slash = strrchr(other, '/');
	char *path;

	if (name[0] == '/' || slash == NULL)
		return strdup(name);
	return asprintf(&path, "%.*s/%s", (int)(slash - other), other, name) <
	    0 ? NULL : path;
}

static int
copy(struct recording_setting *to, const Tributary__Recording *r,
    const char *file)
{
	const Tributary__Flight *f = r->flight;
	const Tributary__Rotate *at = r->rotate;

	if ((to->name = strdup(r->name)) == NULL ||
	    (to->config_path = path_beside(file, r->config_file)) == NULL ||
	    (r->file_pattern != NULL &&
	    (to->file_pattern = strdup(r->file_pattern)) == NULL) ||
	    copy_words(&to->machines, r->machines, r->n_machines) != 0)
		return -1;
	if (f != NULL)
		return copy_words(&to->triggers, f->at_trigger,
		    f->n_at_trigger);
	return at == NULL ? 0 :
	    copy_words(&to->triggers, at->at_trigger, at->n_at_trigger);
}

int
settings_add_recording(struct settings *s, const Tributary__Recording *r,
    const char *file, char *err, size_t err_size)
{
	struct recording_setting *grown, to = { .by_machine = r->split ==
	    PERFETTO__PROTOS__SEGMENT_CONFIG__SPLIT__BY_MACHINE };
	const Tributary__Flight *f = r->flight;

	if (check(s, r, err, err_size) != 0)
		return -1;
	if (r->rotate != NULL) {
		to.every_ms = r->rotate->every_ms;
		to.max_bytes = r->rotate->size_kb * 1024;
	}
	if (r->keep != NULL) {
		to.keep_bytes = r->keep->size_mb << 20;
		to.keep_ms = r->keep->hours * 3600 * 1000;
	}
	if (f != NULL) {
		to.is_flight = true;
		to.before_ms = f->has_before_ms ? f->before_ms : BEFORE_MS;
		to.after_ms = f->has_after_ms ? f->after_ms : AFTER_MS;
	}
	grown = reallocarray(s->recordings, s->n_recordings + 1,
	    sizeof(*grown));
	if (grown == NULL)
		return FAILURE(err, err_size, "no memory");
	s->recordings = grown;
	if (copy(&to, r, file) != 0) {
		free_recording(&to);
		return FAILURE(err, err_size, "no memory");
	}
	s->recordings[s->n_recordings++] = to;
	return 0;
}
