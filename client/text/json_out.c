#include "client/text/json_out.h"

#include <inttypes.h>

#include "client/text/json_text.h"

void
json_raw(struct json_out *j, const char *key)
{
	if (j->behind)
		putc(',', j->out);
	j->behind = true;
	if (key == NULL)
		return;
	json_text(j->out, key);
	putc(':', j->out);
}

static void
begin(struct json_out *j, const char *key, char c)
{
	json_raw(j, key);
	putc(c, j->out);
	j->behind = false;
}

static void
end(struct json_out *j, char c)
{
	putc(c, j->out);
	j->behind = true;
}

void
json_object(struct json_out *j, const char *key)
{
	begin(j, key, '{');
}

void
json_object_end(struct json_out *j)
{
	end(j, '}');
}

void
json_array(struct json_out *j, const char *key)
{
	begin(j, key, '[');
}

void
json_array_end(struct json_out *j)
{
	end(j, ']');
}

void
json_uint(struct json_out *j, const char *key, uint64_t v)
{
	json_raw(j, key);
	fprintf(j->out, "%" PRIu64, v);
}

void
json_int(struct json_out *j, const char *key, int64_t v)
{
	json_raw(j, key);
	fprintf(j->out, "%" PRId64, v);
}

void
json_bool(struct json_out *j, const char *key, bool v)
{
	json_raw(j, key);
	fputs(v ? "true" : "false", j->out);
}

void
json_null(struct json_out *j, const char *key)
{
	json_raw(j, key);
	fputs("null", j->out);
}

void
json_number(struct json_out *j, const char *key, double v)
{
	json_raw(j, key);
	fprintf(j->out, "%.3f", v);
}

void
json_string(struct json_out *j, const char *key, const char *v)
{
	json_raw(j, key);
	json_text(j->out, v);
}
