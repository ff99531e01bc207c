/*
 * Short words of strangers, of command lines and of certificates: sizes, times,
 * roles, patterns, and what a log line makes of any of them.
 */
#include <stdlib.h>
#include <string.h>

#include "protos/utf8.h"
#include "tests/fuzz/shown.h"
#include "tests/fuzz/texts/texts.h"
#include "transport/base/glob.h"
#include "transport/base/log.h"
#include "transport/base/size_duration.h"
#include "transport/socket/roles.h"

/* Longer ones are no words, and patterns take the product of both lengths. */
#define WORD_MAX 512u

static void
check_line(const char *text, size_t len, size_t room)
{
	char line[WORD_MAX * 4 + 8];

	if (log_escape(line, room, text, len) != line ||
	    strlen(line) >= room || !is_shown(line) ||
	    strpbrk(line, "\"'") != NULL)
		abort();
	(void)utf8_escape(line, room, text, len, "");
	if (!is_shown(line))
		abort();
}

static void
check_numbers(const char *text)
{
	uint32_t ms = 4711;
	uint64_t bytes = 4711;
	char err[200] = "";

	if (size_duration_parse_ms(text, &ms, err, sizeof(err)) != 0 &&
	    (ms != 4711 || err[0] == '\0'))
		abort();
	err[0] = '\0';
	if (size_duration_parse_bytes(text, &bytes, err, sizeof(err)) != 0 &&
	    (bytes != 4711 || err[0] == '\0'))
		abort();
}

void
fuzz_words(const uint8_t *data, size_t size)
{
	enum log_level level;
	char *text, *end;

	if (size > WORD_MAX || (text = malloc(size + 1)) == NULL)
		return;
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	check_line(text, size, WORD_MAX * 4 + 8);
	check_line(text, size, 1 + size % 40);
	check_numbers(text);
	if (role_by_name(text) > ROLES_ALL ||
	    role_from_uri(text, size) > ROLE_UNKNOWN)
		abort();
	(void)!log_level_parse(text, &level);
	if (!glob_is_pattern(text) && !glob_match(text, text))
		abort();
	if ((end = strchr(text, '\n')) != NULL) {
		*end = '\0';
		(void)glob_match(text, end + 1);
	}
	free(text);
}
