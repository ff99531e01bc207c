#include "client/tracing/event/categories.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <tributary/data_source.h>

#include "protos/fields.h"
#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

struct text {
	const char *s;
	size_t len;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tributary_category *categories;
static struct {
	const uint8_t *config; /* borrowed */
	size_t len;
	bool started;
} instances[TRIBUTARY_INSTANCES_MAX];
static void (*changed_hook)(void), (*removed_hook)(void);

/* ---- Which are wanted ---- */

static struct text
text_of(const char *s)
{
	struct text t = { s, strlen(s) };

	return t;
}

static bool
matches(struct text pattern, struct text name, bool with_stars)
{
	const char *star = memchr(pattern.s, '*', pattern.len);
	size_t n;

	if (star == NULL)
		return pattern.len == name.len &&
		    memcmp(pattern.s, name.s, name.len) == 0;
	n = (size_t)(star - pattern.s);
	return with_stars && name.len >= n && memcmp(pattern.s, name.s, n) == 0;
}

/* Whether the repeated field of the config has a pattern for the name. */
static bool
config_names(const uint8_t *config, size_t len, uint32_t field,
    struct text name, bool with_stars)
{
	struct pb_reader r;
	struct pb_field f;
	struct text pattern;

	pb_init(&r, config, len);
	while (pb_next(&r, &f)) {
		if (f.number != field || f.wire != PB_BYTES)
			continue;
		pattern.s = (const char *)f.data;
		pattern.len = f.len;
		if (matches(pattern, name, with_stars))
			return true;
	}
	return false;
}

static bool
config_has(const uint8_t *config, size_t len, uint32_t field)
{
	struct pb_reader r;
	struct pb_field f;

	pb_init(&r, config, len);
	while (pb_next(&r, &f))
		if (f.number == field && f.wire == PB_BYTES)
			return true;
	return false;
}

/* The next tag of a list with commas; false: there is none. */
static bool
next_tag(const char **at, struct text *tag)
{
	const char *s = *at;

	s += strspn(s, ", ");
	if (*s == '\0')
		return false;
	tag->s = s;
	tag->len = strcspn(s, ", ");
	*at = s + tag->len;
	return true;
}

static bool
config_names_tag(const uint8_t *config, size_t len, uint32_t field,
    const char *tags, bool with_stars)
{
	struct text tag;

	while (next_tag(&tags, &tag))
		if (config_names(config, len, field, tag, with_stars))
			return true;
	return false;
}

static bool
is_off_by_default(const char *tags)
{
	struct text tag;

	while (next_tag(&tags, &tag))
		if (matches(text_of("slow"), tag, false) ||
		    matches(text_of("debug"), tag, false))
			return true;
	return false;
}

bool
category_is_wanted(const struct tributary_category *c, const uint8_t *config,
    size_t len)
{
	const char *tags = c->tags != NULL ? c->tags : "";
	struct text name = text_of(c->name);
	int stars;

	for (stars = 0; stars < 2; stars++) {
		if (config_names(config, len,
			TrackEventConfig_enabled_categories, name, stars) ||
		    config_names_tag(config, len,
			TrackEventConfig_enabled_tags, tags, stars))
			return true;
		if (config_names(config, len,
			TrackEventConfig_disabled_categories, name, stars) ||
		    config_names_tag(config, len,
			TrackEventConfig_disabled_tags, tags, stars))
			return false;
		if (!config_has(config, len, TrackEventConfig_disabled_tags) &&
		    is_off_by_default(tags))
			return false;
	}
	return true;
}

/* ---- Instances ---- */

static void
set_bit(struct tributary_category *c, unsigned slot)
{
	uint64_t bit = (uint64_t)1 << slot;

	if (instances[slot].started && category_is_wanted(c,
	    instances[slot].config, instances[slot].len))
		__atomic_fetch_or(&c->enabled, bit, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(&c->enabled, ~bit, __ATOMIC_RELAXED);
}

static void
set_instance(unsigned slot, bool started, const uint8_t *config, size_t len)
{
	struct tributary_category *c;

	pthread_mutex_lock(&lock);
	instances[slot].started = started;
	instances[slot].config = config;
	instances[slot].len = len;
	for (c = categories; c != NULL; c = c->next)
		set_bit(c, slot);
	pthread_mutex_unlock(&lock);
}

void
categories_start(unsigned slot, const uint8_t *config, size_t len)
{
	set_instance(slot, true, config, len);
}

void
categories_stop(unsigned slot)
{
	set_instance(slot, false, NULL, 0);
}

/* ---- The list ---- */

void
categories_set_hooks(void (*changed)(void), void (*removed)(void))
{
	changed_hook = changed;
	removed_hook = removed;
}

void
tributary_category_add(struct tributary_category *c)
{
	unsigned slot;

	pthread_mutex_lock(&lock);
	c->next = categories;
	categories = c;
	for (slot = 0; slot < TRIBUTARY_INSTANCES_MAX; slot++)
		set_bit(c, slot);
	pthread_mutex_unlock(&lock);
	if (changed_hook != NULL)
		changed_hook();
}

void
tributary_category_remove(struct tributary_category *c)
{
	struct tributary_category **at;

	pthread_mutex_lock(&lock);
	for (at = &categories; *at != NULL && *at != c; at = &(*at)->next)
		;
	if (*at == c)
		*at = c->next;
	pthread_mutex_unlock(&lock);
	if (removed_hook != NULL)
		removed_hook();
}

static void
put_category(struct pb_writer *w, const struct tributary_category *c)
{
	const char *tags = c->tags != NULL ? c->tags : "";
	struct text tag;
	size_t mark;

	mark = pb_nest_begin(w, TrackEventDescriptor_available_categories);
	pb_put_string(w, TrackEventCategory_name, c->name);
	if (c->description != NULL && c->description[0] != '\0')
		pb_put_string(w, TrackEventCategory_description,
		    c->description);
	while (next_tag(&tags, &tag))
		pb_put_bytes(w, TrackEventCategory_tags, tag.s, tag.len);
	pb_nest_end(w, mark);
}

bool
categories_exist(void)
{
	bool any;

	pthread_mutex_lock(&lock);
	any = categories != NULL;
	pthread_mutex_unlock(&lock);
	return any;
}

uint8_t *
categories_descriptor(size_t *len)
{
	struct tributary_category *c;
	struct pb_writer w;
	size_t mark;

	pb_writer_init(&w);
	mark = pb_nest_begin(&w, DataSourceDescriptor_track_event_descriptor);
	pthread_mutex_lock(&lock);
	for (c = categories; c != NULL; c = c->next)
		put_category(&w, c);
	pthread_mutex_unlock(&lock);
	pb_nest_end(&w, mark);
	if (w.failed) {
		pb_writer_done(&w);
		return NULL;
	}
	*len = w.len;
	return w.data;
}

void
categories_after_fork(uint64_t enabled)
{
	struct tributary_category *c;

	pthread_mutex_init(&lock, NULL);
	memset(instances, 0, sizeof(instances));
	for (c = categories; c != NULL; c = c->next)
		__atomic_store_n(&c->enabled, enabled, __ATOMIC_RELAXED);
}

void
categories_forget(uint64_t bits)
{
	struct tributary_category *c;

	pthread_mutex_lock(&lock);
	for (c = categories; c != NULL; c = c->next)
		__atomic_fetch_and(&c->enabled, ~bits, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
}
