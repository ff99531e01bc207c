#include "client/upload/upload_settings.h"

#include <stdlib.h>
#include <string.h>

#include "client/archive/catalog_copy.h"
#include "client/archive/postgres_url.h"
#include "protos/text_settings.h"
#include "protos/upload_settings.pb-c.h"
#include "transport/base/failure.h"

/* More than any disk or line; bytes fit 63 bits. */
#define KB_MOST (1ull << 50)
#define MB_MOST (1ull << 40)
/* A day. */
#define MS_MOST 86400000ull

void
upload_settings_init(struct upload_settings *s)
{
	*s = (struct upload_settings){
		.seccomp = true,
		.part_mb = 16,
		.stall_s = 120,
		.min_retry_ms = 1000,
		.max_retry_ms = 300000,
		.log_level = LOG_LEVEL_INFO,
	};
}

void
upload_settings_done(struct upload_settings *s)
{
	free(s->archive_dir);
	free(s->url);
	free(s->endpoint);
	free(s->region);
	free(s->credentials_file);
	free(s->ca_file);
	free(s->catalog);
	s3_place_done(&s->place);
	*s = (struct upload_settings){ 0 };
}

int
upload_settings_set(char **slot, const char *value)
{
	char *copy;

	if (*value == '\0' || (copy = strdup(value)) == NULL)
		return -1;
	free(*slot);
	*slot = copy;
	return 0;
}

/* ---- the file ---- */

#define NUMBER(member, most)                                                  \
	{ #member, offsetof(struct upload_settings, member),                  \
		sizeof(((struct upload_settings *)0)->member), false, most }

static const struct text_setting table[] = {
	TEXT_SETTING(struct upload_settings, allow_plain_http),
	TEXT_SETTING(struct upload_settings, seccomp),
	TEXT_LIMIT(struct upload_settings, part_mb, 5120),
	TEXT_LIMIT(struct upload_settings, stall_s, 86400),
	NUMBER(max_kb_per_s, KB_MOST),
	TEXT_LIMIT(struct upload_settings, min_retry_ms, MS_MOST),
	TEXT_LIMIT(struct upload_settings, max_retry_ms, MS_MOST),
	NUMBER(max_backlog_mb, MB_MOST),
};

static int
take(const struct text_settings *t, char **slot, const char *value,
    const char *what)
{
	if (value == NULL || upload_settings_set(slot, value) == 0)
		return 0;
	return text_settings_complain(t, what, *value == '\0' ? "it is empty" :
	    "no memory");
}

static int
apply(const struct text_settings *t, const ProtobufCMessage *message,
    void *settings)
{
	const Tributary__UploadSettings *m =
	    (const Tributary__UploadSettings *)message;
	struct upload_settings *s = settings;

	if (take(t, &s->archive_dir, m->archive_dir, "archive_dir") != 0 ||
	    take(t, &s->url, m->url, "url") != 0 ||
	    take(t, &s->endpoint, m->endpoint, "endpoint") != 0 ||
	    take(t, &s->region, m->region, "region") != 0 ||
	    take(t, &s->credentials_file, m->credentials_file,
		"credentials_file") != 0 ||
	    take(t, &s->ca_file, m->ca_file, "ca_file") != 0 ||
	    take(t, &s->catalog, m->catalog, "catalog") != 0)
		return -1;
	if (m->log_level != NULL &&
	    log_level_parse(m->log_level, &s->log_level) != 0)
		return text_settings_complain(t, "log_level",
		    "must be error, warn, info or debug");
	return text_settings_copy(t, "", table,
	    sizeof(table) / sizeof(table[0]), &m->base, s);
}

int
upload_settings_read(struct upload_settings *s, const char *file, char *err,
    size_t err_size)
{
	static const struct text_settings_kind kind = {
		&tributary__upload_settings__descriptor, apply
	};
	const struct text_settings t = { file, err, err_size };

	return text_settings_read(&t, &kind, s);
}

/* ---- all of it ---- */

int
upload_settings_check(struct upload_settings *s, char *err, size_t err_size)
{
	char name[POSTGRES_NAME_MAX], collector[CATALOG_COLLECTOR_MAX];

	if (s->url == NULL)
		return FAILURE(err, err_size, "where to? Set url: "
		    "\"s3://bucket/prefix\" in the settings, or give --url");
	if (s->catalog != NULL &&
	    (postgres_url_name(s->catalog, name, err, err_size) < 0 ||
	    catalog_collector(collector, s->url, NULL, err, err_size) < 0))
		return -1;
	if (s->part_mb < 5)
		return FAILURE(err, err_size, "part_mb: %u is less than the 5 "
		    "MiB that parts have at least", s->part_mb);
	if (s->min_retry_ms > s->max_retry_ms)
		return FAILURE(err, err_size, "min_retry_ms is more than "
		    "max_retry_ms: %llu and %llu",
		    (unsigned long long)s->min_retry_ms,
		    (unsigned long long)s->max_retry_ms);
	s3_place_done(&s->place);
	if (s3_place_init(&s->place, s->url, s->endpoint, s->region, err,
		err_size) != 0)
		return -1;
	if (s->allow_plain_http || !s3_place_is_bare(&s->place))
		return 0;
	return FAILURE(err, err_size, "endpoint \"%s\": anybody on the way "
	    "could read the traces: use https, or set allow_plain_http: true",
	    s->endpoint);
}
