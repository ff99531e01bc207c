#include "protos/config_support.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "protos/trace_config.pb-c.h"
#include "protos/varint.h"

/* "trace_filter.string_filter_chain_v54.rules.atrace_payload_starts_with" */
#define PATH_MAX_BYTES 128
#define TEXT_MAX_BYTES 384

#define POLICY_PATH "buffers.fill_policy"
/* Fields below are of producers. */
#define SOURCE_PATH "data_sources.config"
#define FTRACE_PATH SOURCE_PATH ".ftrace_config"

/* ---- a reader of wire format: protos knows nothing of transport ---- */

struct wire {
	const uint8_t *p;
	const uint8_t *end;
};

struct wire_field {
	uint32_t number;
	unsigned type;       /* ProtobufCWireType */
	uint64_t value;      /* of the lengthless ones */
	const uint8_t *data; /* LENGTH_PREFIXED */
	size_t len;
};

static bool
read_varint(struct wire *w, uint64_t *out)
{
	const uint8_t *p = pb_varint(w->p, w->end, out);

	if (p != NULL)
		w->p = p;
	return p != NULL;
}

static bool
read_fixed(struct wire *w, size_t n, uint64_t *out)
{
	size_t i;

	if ((size_t)(w->end - w->p) < n)
		return false;
	*out = 0;
	for (i = 0; i < n; i++)
		*out |= (uint64_t)w->p[i] << (8 * i);
	w->p += n;
	return true;
}

/* False at the end, and at the first byte that is malformed. */
static bool
next_field(struct wire *w, struct wire_field *f)
{
	uint64_t tag, len;

	if (w->p >= w->end || !read_varint(w, &tag) || tag > UINT32_MAX ||
	    tag >> 3 == 0)
		return false;
	*f = (struct wire_field){
		.number = (uint32_t)(tag >> 3), .type = tag & 7
	};
	switch (f->type) {
	case PROTOBUF_C_WIRE_TYPE_VARINT:
		return read_varint(w, &f->value);
	case PROTOBUF_C_WIRE_TYPE_64BIT:
		return read_fixed(w, 8, &f->value);
	case PROTOBUF_C_WIRE_TYPE_32BIT:
		return read_fixed(w, 4, &f->value);
	case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
		if (!read_varint(w, &len) || len > (uint64_t)(w->end - w->p))
			return false;
		f->data = w->p;
		f->len = (size_t)len;
		w->p += len;
		return true;
	default:
		return false;
	}
}

/* ---- the walk ---- */

struct walk {
	config_support_fn fn;
	void *arg;
	char told[CONFIG_SUPPORT_MAX][PATH_MAX_BYTES];
	unsigned n_told;
	bool discards; /* a buffer with DISCARD */
	bool into_file;
};

/*
 * True for a path not told yet, while there is room.  The last place is used to
 * say that more are not named.
 */
static bool
wants(struct walk *w, const char *path)
{
	unsigned i;

	if (w->n_told == CONFIG_SUPPORT_MAX)
		return false;
	for (i = 0; i < w->n_told; i++)
		if (strcmp(w->told[i], path) == 0)
			return false;
	if (w->n_told == CONFIG_SUPPORT_MAX - 1) {
		w->n_told++;
		w->fn(w->arg, path, "The config sets more fields without "
		    "effect than are named here");
		return false;
	}
	snprintf(w->told[w->n_told++], PATH_MAX_BYTES, "%s", path);
	return true;
}

/* Another producer than ours may well know it. */
static const char *
with_whom(const char *path)
{
	return strncmp(path, SOURCE_PATH ".", sizeof(SOURCE_PATH)) == 0 ?
	    " with tributary-probes" : "";
}

static void
tell_unknown(struct walk *w, const char *parent, uint32_t number)
{
	char path[PATH_MAX_BYTES], text[TEXT_MAX_BYTES];

	snprintf(path, sizeof(path), "%s%sfield %u", parent,
	    parent[0] != '\0' ? " " : "", number);
	if (!wants(w, path))
		return;
	snprintf(text, sizeof(text), "%s of the trace config has no effect%s: "
	    "this version does not know it", path, with_whom(path));
	w->fn(w->arg, path, text);
}

static void
tell_value(struct walk *w, const char *path, int32_t value)
{
	char text[TEXT_MAX_BYTES];

	if (!wants(w, path))
		return;
	snprintf(text, sizeof(text), "%s of the trace config has no effect%s: "
	    "this version does not know its value %d", path, with_whom(path),
	    value);
	w->fn(w->arg, path, text);
}

static void
tell_ignored(struct walk *w, const struct config_support *s)
{
	char text[TEXT_MAX_BYTES];

	if (!wants(w, s->path))
		return;
	snprintf(text, sizeof(text), "%s of the trace config has no effect%s: "
	    "%s", s->path, with_whom(s->path), s->note);
	w->fn(w->arg, s->path, text);
}

/* Notes which of the fields are set that contradict each other. */
static void
note(struct walk *w, const char *path, const struct wire_field *f)
{
	if (f->type != PROTOBUF_C_WIRE_TYPE_VARINT)
		return;
	if (strcmp(path, POLICY_PATH) == 0)
		w->discards |= f->value ==
		    PERFETTO__PROTOS__TRACE_CONFIG__BUFFER_CONFIG__FILL_POLICY__DISCARD;
	else if (strcmp(path, "write_into_file") == 0)
		w->into_file = true;
}

/*
 * A full buffer with DISCARD stays closed, however much of it is in the file:
 * Perfetto's importer calls such a config an error, too.
 */
static void
tell_contradiction(struct walk *w)
{
	if (w->discards && w->into_file && wants(w, POLICY_PATH))
		w->fn(w->arg, POLICY_PATH, POLICY_PATH " of the trace config "
		    "is DISCARD although it has write_into_file: a buffer that "
		    "was full once takes nothing more, and the file ends "
		    "there; RING_BUFFER goes on");
}

/*
 * parent: the row of the message, NULL for the config itself.  Rows of what is
 * in a message follow its own.
 */
static const struct config_support *
find_row(const struct config_support *parent, const char *name)
{
	size_t n, i = 0, prefix = 0;
	const struct config_support *t = config_support_table(&n);

	if (parent != NULL) {
		i = (size_t)(parent - t) + 1;
		prefix = strlen(parent->path) + 1;
	}
	for (; i < n; i++) {
		if (prefix > 0 && (strncmp(t[i].path, parent->path,
		    prefix - 1) != 0 || t[i].path[prefix - 1] != '.'))
			return NULL;
		if (strcmp(t[i].path + prefix, name) == 0)
			return &t[i];
	}
	return NULL;
}

/* Each field's default is 0, false or nothing: see the schema. */
static bool
is_default(const struct wire_field *f)
{
	return f->type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED ? f->len == 0 :
	    f->value == 0;
}

/* Depth is the schema's, which is not recursive where the table has rows. */
static void
check_message(struct walk *w, const ProtobufCMessageDescriptor *d,
    const struct config_support *parent, const uint8_t *data, size_t len)
{
	const bool of_producer = parent != NULL &&
	    strcmp(parent->path, SOURCE_PATH) == 0;
	struct wire in = { .p = data, .end = data + len };
	const ProtobufCFieldDescriptor *fd;
	const struct config_support *row;
	struct wire_field f;

	while (next_field(&in, &f)) {
		fd = protobuf_c_message_descriptor_get_field(d, f.number);
		if (fd == NULL) {
			if (!of_producer)
				tell_unknown(w, parent != NULL ?
				    parent->path : "", f.number);
			continue;
		}
		if (is_default(&f) ||
		    (row = find_row(parent, fd->name)) == NULL)
			continue;
		note(w, row->path, &f);
		if (row->kind == CONFIG_IGNORED)
			tell_ignored(w, row);
		else if (fd->type == PROTOBUF_C_TYPE_ENUM &&
		    f.type == PROTOBUF_C_WIRE_TYPE_VARINT &&
		    protobuf_c_enum_descriptor_get_value(fd->descriptor,
		    (int)f.value) == NULL)
			tell_value(w, row->path, (int32_t)f.value);
		else if (fd->type == PROTOBUF_C_TYPE_MESSAGE &&
		    f.type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
			check_message(w, fd->descriptor, row, f.data, f.len);
	}
}

void
config_support_check(const uint8_t *config, size_t len, config_support_fn fn,
    void *arg)
{
	struct walk w = { .fn = fn, .arg = arg };

	if (len > 0)
		check_message(&w, &perfetto__protos__trace_config__descriptor,
		    NULL, config, len);
	tell_contradiction(&w);
}

void
config_support_check_ftrace(const uint8_t *config, size_t len,
    config_support_fn fn, void *arg)
{
	struct walk w = { .fn = fn, .arg = arg };
	size_t n, i;
	const struct config_support *t = config_support_table(&n);

	for (i = 0; strcmp(t[i].path, FTRACE_PATH) != 0;)
		i++;
	if (len > 0)
		check_message(&w, &perfetto__protos__ftrace_config__descriptor,
		    &t[i], config, len);
}
