#include "client/command/collectors.h"

#include <stdlib.h>
#include <string.h>

#include "client/command/command_line.h"
#include "protos/fleet.pb-c.h"
#include "protos/message_copy.h"
#include "protos/text_settings.h"
#include "transport/base/failure.h"

#define ERROR_BYTES 1024
/* An hour. */
#define TIMEOUT_MOST_MS 3600000u

/* The file under way, and what of it other flags say. */
struct reading {
	struct collectors *c;
	const struct dial_options *how;
};

/* Letters that may stand in names of files, too. */
static bool
is_name(const char *name)
{
	return name[0] != '\0' && name[0] != '.' && name[0] != '-' &&
	    strlen(name) <= COLLECTOR_NAME_MAX &&
	    name[strspn(name, "abcdefghijklmnopqrstuvwxyz"
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_")] == '\0';
}

static bool
is_taken(const struct collectors *c, const char *name)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		if (strcmp(c->list[i].name, name) == 0)
			return true;
	return false;
}

/* An address may be a proxy's, which tells collectors apart by name. */
static bool
is_same(const struct collector_end *a, const struct collector_end *b)
{
	const char *name = a->how.tls_name, *other = b->how.tls_name;

	return a->text != NULL && b->text != NULL &&
	    strcmp(a->text, b->text) == 0 &&
	    strcmp(name == NULL ? "" : name, other == NULL ? "" : other) == 0;
}

static int
set_end(struct collector_end *e, const char *text, char *err, size_t err_size)
{
	e->text = text;
	e->how.in_background = true;
	if (addr_parse(&e->addr, text, err, err_size) != 0)
		return -1;
	return dial_flags_check(&e->how, &e->addr, err, err_size);
}

/* ---- the file ---- */

/* tls: of the collector, or of all; NULL: neither is said. */
static int
take_end(const struct text_settings *t, struct collector_end *e,
    const char *text, const Tributary__FleetTls *tls, const char *field)
{
	char why[ERROR_BYTES];

	if (text == NULL)
		return 0;
	/* Flags of the command line are for the ends that have it. */
	if (strncmp(text, "tls://", 6) != 0)
		e->how = (struct dial_options){ .service = e->how.service,
			.ssh_command = e->how.ssh_command };
	if (strncmp(text, "ssh://", 6) != 0)
		e->how.ssh_command = NULL;
	if (tls != NULL && strncmp(text, "tls://", 6) == 0) {
		if (tls->dir != NULL)
			e->how.tls_dir = tls->dir;
		if (tls->name != NULL)
			e->how.tls_name = tls->name;
		e->how.allow_tls12 |= tls->allow_tls_1_2 != 0;
	}
	if (set_end(e, text, why, sizeof(why)) != 0)
		return text_settings_complain(t, field, "%s", why);
	return 0;
}

/* Refuses a collector that another line names: tables would have it twice. */
static int
check_twins(const struct text_settings *t, const struct collectors *c)
{
	const struct collector *last = &c->list[c->n - 1], *other;
	size_t i;

	for (i = 0; i + 1 < c->n; i++) {
		other = &c->list[i];
		if (is_same(&last->consumer, &other->consumer))
			return text_settings_complain(t, "collector.connect",
			    "%s and %s have the same address, %s: give each "
			    "its own", other->name, last->name,
			    last->consumer.text);
		if (is_same(&last->producer, &other->producer))
			return text_settings_complain(t, "collector.producers",
			    "%s and %s have the same address, %s: give each "
			    "its own", other->name, last->name,
			    last->producer.text);
	}
	return 0;
}

static int
take_collector(const struct text_settings *t, const struct reading *r,
    const Tributary__Fleet *m, const Tributary__FleetCollector *from)
{
	struct collector *to = &r->c->list[r->c->n];

	if (from->name == NULL || !is_name(from->name))
		return text_settings_complain(t, "collector.name",
		    "each has one, of at most %u letters, digits and ._-",
		    COLLECTOR_NAME_MAX);
	if (is_taken(r->c, from->name))
		return text_settings_complain(t, "collector.name", "two are "
		    "called %s: give one of them another", from->name);
	to->name = from->name;
	to->timeout_ms = from->has_timeout_ms ? from->timeout_ms :
	    m->has_timeout_ms ? m->timeout_ms : COLLECTOR_TIMEOUT_MS;
	if (to->timeout_ms == 0 || to->timeout_ms > TIMEOUT_MOST_MS)
		return text_settings_complain(t, "timeout_ms", "it is at "
		    "least 1 and at most %u", TIMEOUT_MOST_MS);
	to->consumer.how = to->producer.how = *r->how;
	to->consumer.how.service = "consumer";
	to->producer.how.service = "producer";
	r->c->n++;
	if (take_end(t, &to->consumer, from->connect, from->tls != NULL ?
	    from->tls : m->tls, "collector.connect") != 0)
		return -1;
	if (take_end(t, &to->producer, from->producers,
	    from->producer_tls != NULL ? from->producer_tls : m->producer_tls,
	    "collector.producers") != 0)
		return -1;
	return check_twins(t, r->c);
}

static int
apply(const struct text_settings *t, const ProtobufCMessage *message,
    void *reading)
{
	struct reading *r = reading;
	Tributary__Fleet *m;
	size_t i;

	r->c->file = m = (Tributary__Fleet *)message_copy(message);
	if (m == NULL)
		return text_settings_complain(t, "collector", "no memory");
	if (m->n_collector == 0 || m->n_collector > COLLECTORS_MAX)
		return text_settings_complain(t, "collector", "there are %zu: "
		    "name at least one, and at most %u (collector { name: "
		    "\"c1\" connect: \"tls://c1.example:7444\" })",
		    m->n_collector, COLLECTORS_MAX);
	r->c->list = calloc(m->n_collector, sizeof(*r->c->list));
	if (r->c->list == NULL)
		return text_settings_complain(t, "collector", "no memory");
	for (i = 0; i < m->n_collector; i++)
		if (take_collector(t, r, m, m->collector[i]) != 0)
			return -1;
	r->c->fleet_triggers = (const char *const *)m->fleet_triggers;
	r->c->n_fleet_triggers = m->n_fleet_triggers;
	return 0;
}

int
collectors_read(struct collectors *c, const char *file,
    const struct dial_options *how, char *err, size_t err_size)
{
	static const struct text_settings_kind kind = {
		&tributary__fleet__descriptor, apply
	};
	const struct text_settings t = { file, err, err_size };
	struct reading r = { c, how };

	*c = (struct collectors){ 0 };
	return text_settings_read(&t, &kind, &r);
}

/* ---- the command line ---- */

static struct collector_end *
end_of(struct collector *c, const struct command_line *line)
{
	return strcmp(line->how.service, "producer") == 0 ? &c->producer :
	    &c->consumer;
}

static int
take_connects(struct collectors *c, const struct command_line *line, char *err,
    size_t err_size)
{
	struct collector *to;
	size_t i;

	for (i = 0; i < line->n_connects; i++) {
		if (is_taken(c, line->connects[i]))
			return FAILURE(err, err_size, "--connect %s is there "
			    "twice", line->connects[i]);
		to = &c->list[c->n++];
		to->name = line->connects[i];
		to->timeout_ms = COLLECTOR_TIMEOUT_MS;
		end_of(to, line)->how = line->how;
		if (set_end(end_of(to, line), to->name, err, err_size) != 0)
			return -1;
	}
	return 0;
}

/* The only one: an address, or its default. */
static int
take_one(struct collectors *c, const struct command_line *line, char *err,
    size_t err_size)
{
	struct collector_end *e = end_of(&c->list[0], line);

	c->n = 1;
	c->list[0].timeout_ms = COLLECTOR_TIMEOUT_MS;
	e->how = line->how;
	e->text = line->connect;
	if (e != &c->list[0].producer)
		return command_line_consumer(line, &e->addr, err, err_size);
	return command_line_producer(line, &e->addr, err, err_size);
}

int
collectors_of_line(struct collectors *c, const struct command_line *line,
    char *err, size_t err_size)
{
	if (line->fleet != NULL && line->connect != NULL) {
		*c = (struct collectors){ 0 };
		return FAILURE(err, err_size, "--fleet names the collectors, "
		    "and so does --connect: leave one of them out");
	}
	if (line->fleet != NULL)
		return collectors_read(c, line->fleet, &line->how, err,
		    err_size);
	*c = (struct collectors){ 0 };
	c->list = calloc(line->n_connects + 1, sizeof(*c->list));
	if (c->list == NULL)
		return FAILURE(err, err_size, "out of memory");
	if (line->n_connects > 1)
		return take_connects(c, line, err, err_size);
	return take_one(c, line, err, err_size);
}

void
collectors_done(struct collectors *c)
{
	free(c->list);
	if (c->file != NULL)
		tributary__fleet__free_unpacked(c->file, NULL);
	*c = (struct collectors){ 0 };
}

/* ---- questions ---- */

int
collectors_want_consumers(const struct collectors *c, char *err,
    size_t err_size)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		if (c->file != NULL && c->list[i].consumer.text == NULL)
			return FAILURE(err, err_size, "the fleet's file does "
			    "not say where %s takes commands: add connect: "
			    "\"tls://HOST:PORT\", its consumer socket",
			    c->list[i].name);
	return 0;
}

int
collectors_want_producers(const struct collectors *c, char *err,
    size_t err_size)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		if (c->file != NULL && c->list[i].producer.text == NULL)
			return FAILURE(err, err_size, "the fleet's file does "
			    "not say where %s listens for devices: add "
			    "producers: \"tls://HOST:PORT\", its producer "
			    "socket", c->list[i].name);
	return 0;
}

const char *
collectors_word(const struct collectors *c, size_t i, const char *word)
{
	const char *name;
	size_t j, len;

	for (j = 0; j < c->n; j++) {
		if ((name = c->list[j].name) == NULL)
			return word;
		len = strlen(name);
		if (strncmp(word, name, len) == 0 && word[len] == '/')
			return i == j ? word + len + 1 : NULL;
	}
	return word;
}
