/*
 * Any text as an address and as a list of addresses.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/texts/texts.h"
#include "transport/socket/addr.h"

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s\n", #cond);                        \
			abort();                                               \
		}                                                              \
	} while (0)

static void
check_address(const char *text)
{
	struct addr a, again;
	char err[512] = "", out[ADDR_TEXT_MAX];

	memset(&a, 0, sizeof(a));
	if (addr_parse(&a, text, err, sizeof(err)) != 0) {
		CHECK(err[0] != '\0');
		return;
	}
	CHECK(strcmp(a.text, text) == 0);
	CHECK(a.sa_len <= sizeof(a.sa));
	CHECK(a.sa_len != 0 || a.kind == ADDR_TCP || a.kind == ADDR_TLS ||
	    a.kind == ADDR_SSH); /* a name */
	(void)addr_is_local(&a.sa);
	addr_format(&a.sa, a.sa_len, out, sizeof(out));
	/* What is written can be read, and means the same. */
	if (a.kind != ADDR_UNIX && a.sa_len != 0) {
		CHECK(addr_parse(&again, out, err, sizeof(err)) == 0);
		/* but for v4 in v6, which is written as v4 */
		CHECK(again.sa.ss_family != a.sa.ss_family ||
		    memcmp(&again.sa, &a.sa, a.sa_len) == 0);
	}
}

void
fuzz_addr(const uint8_t *data, size_t size)
{
	char *text, item[ADDR_TEXT_MAX];
	const char *list;
	int rc;

	if ((text = malloc(size + 1)) == NULL)
		return;
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	check_address(text);
	list = text;
	while ((rc = addr_list_next(&list, item, sizeof(item))) != 0) {
		if (rc > 0)
			check_address(item);
	}
	free(text);
}
