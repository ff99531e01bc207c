#include "client/archiver/settings.h"

#include <stdlib.h>
#include <string.h>

#include "protos/archive_settings.pb-c.h"
#include "protos/settings.pb-c.h"
#include "protos/text_settings.h"

#define MIB       (1ull << 20)
#define HOUR_MS   3600000ull
#define MINUTE_MS 60000ull

/* Numbers beyond any disk and life; bytes and milliseconds fit 63 bits. */
#define MB_MOST    (1ull << 40)
#define HOURS_MOST (1ull << 32)

void
archiver_settings_init(struct archiver_settings *s)
{
	memset(s, 0, sizeof(*s));
	s->rescan_ms = 60 * MINUTE_MS;
	s->log_level = LOG_LEVEL_INFO;
}

void
archiver_settings_done(struct archiver_settings *s)
{
	size_t i;

	for (i = 0; i < s->policy.n_rules; i++)
		free((char *)s->rules[i].recording);
	free(s->rules);
	free(s->folder);
	memset(s, 0, sizeof(*s));
}

int
archiver_settings_set_folder(struct archiver_settings *s, const char *folder)
{
	char *copy;

	if ((copy = strdup(folder)) == NULL)
		return -1;
	free(s->folder);
	s->folder = copy;
	return 0;
}

/* ---- the file ---- */

struct keep_numbers {
	uint64_t size_mb;
	uint64_t hours;
};

static const struct text_setting keep_table[] = {
	TEXT_LIMIT(struct keep_numbers, size_mb, MB_MOST),
	TEXT_LIMIT(struct keep_numbers, hours, HOURS_MOST),
};

static int
apply_keep(const struct text_settings *t, const char *prefix,
    const Tributary__ArchiveKeep *from, struct retention_limit *to)
{
	struct keep_numbers n = { 0, 0 };

	if (from == NULL)
		return 0;
	if (text_settings_copy(t, prefix, keep_table,
	    sizeof(keep_table) / sizeof(keep_table[0]), &from->base, &n) != 0)
		return -1;
	to->bytes = n.size_mb * MIB;
	to->age_ms = n.hours * HOUR_MS;
	return 0;
}

static int
apply_recording(const struct text_settings *t,
    const Tributary__ArchiveRecording *from, struct archiver_settings *s)
{
	struct retention_rule *rule = &s->rules[s->policy.n_rules];

	if (from->name == NULL || from->name[0] == '\0')
		return text_settings_complain(t, "recording.name", "name the "
		    "recording, or those that are meant by a pattern such as "
		    "\"kiosk-*\"");
	if (from->keep == NULL)
		return text_settings_complain(t, "recording.keep", "say how "
		    "much of \"%s\" is kept: keep { size_mb: ... hours: ... }",
		    from->name);
	if (apply_keep(t, "recording.keep.", from->keep, &rule->keep) != 0)
		return -1;
	if ((rule->recording = strdup(from->name)) == NULL)
		return text_settings_complain(t, "recording", "no memory");
	s->policy.n_rules++;
	return 0;
}

static int
apply_recordings(const struct text_settings *t,
    const Tributary__ArchiveSettings *m, struct archiver_settings *s)
{
	size_t i;

	if (m->n_recording == 0)
		return 0;
	s->rules = calloc(m->n_recording, sizeof(*s->rules));
	if (s->rules == NULL)
		return text_settings_complain(t, "recording", "no memory");
	s->policy.rules = s->rules;
	for (i = 0; i < m->n_recording; i++)
		if (apply_recording(t, m->recording[i], s) != 0)
			return -1;
	return 0;
}

/* ---- the collector's ---- */

static int
add_kept(const struct text_settings *t, const Tributary__Recording *from,
    struct archiver_settings *s)
{
	const struct keep_numbers n = {
		from->keep->size_mb, from->keep->hours,
	};
	struct retention_rule *grown;

	if (from->name == NULL || n.size_mb > MB_MOST || n.hours > HOURS_MOST)
		return text_settings_complain(t, "recording.keep", "see "
		    "tributaryd --check-config");
	grown = reallocarray(s->rules, s->policy.n_rules + 1, sizeof(*grown));
	if (grown == NULL)
		return text_settings_complain(t, "recording", "no memory");
	s->policy.rules = s->rules = grown;
	grown += s->policy.n_rules;
	*grown = (struct retention_rule){ .keep = {
		.bytes = n.size_mb * MIB, .age_ms = n.hours * HOUR_MS } };
	if ((grown->recording = strdup(from->name)) == NULL)
		return text_settings_complain(t, "recording", "no memory");
	s->policy.n_rules++;
	return 0;
}

static int
apply_collector(const struct text_settings *t, const ProtobufCMessage *message,
    void *settings)
{
	const Tributary__Settings *m = (const Tributary__Settings *)message;
	size_t i;

	for (i = 0; i < m->n_recording; i++)
		if (m->recording[i]->keep != NULL &&
		    add_kept(t, m->recording[i], settings) != 0)
			return -1;
	return 0;
}

/* Names of recordings have no characters of a pattern. */
static int
read_collector(const struct text_settings *t, const char *file,
    struct archiver_settings *s)
{
	static const struct text_settings_kind kind = {
		&tributary__settings__descriptor, apply_collector
	};
	const struct text_settings of = { file, t->err, t->err_size };

	return file == NULL ? 0 : text_settings_read(&of, &kind, s);
}

struct plain_numbers {
	uint64_t min_free_mb;
	uint32_t rescan_minutes;
	bool upload_required;
};

static const struct text_setting plain_table[] = {
	{ "min_free_mb", offsetof(struct plain_numbers, min_free_mb),
	    sizeof(uint64_t), false, MB_MOST },
	TEXT_LIMIT(struct plain_numbers, rescan_minutes, 0),
	TEXT_SETTING(struct plain_numbers, upload_required),
};

static int
apply_plain(const struct text_settings *t,
    const Tributary__ArchiveSettings *m, struct archiver_settings *s)
{
	struct plain_numbers n = {
		.rescan_minutes = (uint32_t)(s->rescan_ms / MINUTE_MS),
	};

	if (text_settings_copy(t, "", plain_table,
	    sizeof(plain_table) / sizeof(plain_table[0]), &m->base, &n) != 0)
		return -1;
	s->policy.min_free = n.min_free_mb * MIB;
	s->policy.waits_for_upload = n.upload_required;
	s->rescan_ms = n.rescan_minutes * MINUTE_MS;
	return 0;
}

static int
apply(const struct text_settings *t, const ProtobufCMessage *message,
    void *settings)
{
	const Tributary__ArchiveSettings *m =
	    (const Tributary__ArchiveSettings *)message;
	struct archiver_settings *s = settings;

	if (m->archive_dir != NULL && m->archive_dir[0] == '\0')
		return text_settings_complain(t, "archive_dir",
		    "the name of the folder is empty");
	if (m->archive_dir != NULL &&
	    archiver_settings_set_folder(s, m->archive_dir) != 0)
		return text_settings_complain(t, "archive_dir", "no memory");
	if (m->log_level != NULL &&
	    log_level_parse(m->log_level, &s->log_level) != 0)
		return text_settings_complain(t, "log_level",
		    "must be error, warn, info or debug");
	if (apply_keep(t, "keep.", m->keep, &s->policy.all) != 0 ||
	    apply_keep(t, "each_machine.", m->each_machine,
		&s->policy.each_machine) != 0)
		return -1;
	if (apply_recordings(t, m, s) != 0 ||
	    read_collector(t, m->collector_config, s) != 0)
		return -1;
	return apply_plain(t, m, s);
}

int
archiver_settings_read(struct archiver_settings *s, const char *file, char *err,
    size_t err_size)
{
	static const struct text_settings_kind kind = {
		&tributary__archive_settings__descriptor, apply
	};
	const struct text_settings t = { file, err, err_size };

	return text_settings_read(&t, &kind, s);
}
