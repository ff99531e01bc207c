#include <sqlite3.h>

#include "client/archive/catalog_internal.h"
#include "client/archive/segment_entry.h"

static void
span_class_cb(sqlite3_context *context, int n, sqlite3_value **v)
{
	int64_t first = sqlite3_value_int64(v[0]);
	int64_t last = sqlite3_value_int64(v[1]);

	if (sqlite3_value_type(v[0]) != SQLITE_INTEGER ||
	    sqlite3_value_type(v[1]) != SQLITE_INTEGER)
		sqlite3_result_null(context);
	else if (first < 0 || last < first)
		sqlite3_result_error(context, "a span ends before it begins",
		    -1);
	else
		sqlite3_result_int(context,
		    (int)catalog_span_class(first, last));
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* unhex('' or as many digits as in the second argument, size). */
static void
unhex_cb(sqlite3_context *context, int n, sqlite3_value **v)
{
	const char *text = (const char *)sqlite3_value_text(v[0]);
	int i, size = sqlite3_value_int(v[1]);
	uint8_t bytes[SEGMENT_SHA256];

	if (text == NULL || *text == '\0') {
		sqlite3_result_null(context);
		return;
	}
	for (i = 0; i < size && hex_digit(text[2 * i]) >= 0 &&
	    hex_digit(text[2 * i + 1]) >= 0; i++)
		bytes[i] = (uint8_t)(hex_digit(text[2 * i]) * 16 +
		    hex_digit(text[2 * i + 1]));
	if (i < size || text[2 * i] != '\0')
		sqlite3_result_error(context, "bytes are not in hex", -1);
	else
		sqlite3_result_blob(context, bytes, size, SQLITE_TRANSIENT);
}

int
catalog_add_functions(struct catalog *c, char *err, size_t err_size)
{
	const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;

	if (sqlite3_create_function(c->db, "tributary_span_class", 2, flags,
		NULL, span_class_cb, NULL, NULL) == SQLITE_OK &&
	    sqlite3_create_function(c->db, "tributary_unhex", 2, flags, NULL,
		unhex_cb, NULL, NULL) == SQLITE_OK)
		return 0;
	return catalog_failed(c, err, err_size);
}
