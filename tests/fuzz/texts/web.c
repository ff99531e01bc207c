/*
 * Any text as a part of a query, a path, Host, Origin and Authorization: none of
 * it opens a door, and what of it is shown in a page stays text.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/web/web_archive_page.h"
#include "client/web/web_html.h"
#include "client/web/web_page.h"
#include "client/web/web_request.h"
#include "client/web/web_routes.h"
#include "client/web/web_snapshot.h"
#include "tests/fuzz/shown.h"
#include "tests/fuzz/texts/texts.h"

#define TOKEN "0123456789abcdef"

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s\n", #cond);                        \
			abort();                                               \
		}                                                              \
	} while (0)

static void
check_doors(const char *text)
{
	struct web_hosts h = { .tls = false };

	CHECK(web_hosts_add(&h, "localhost", 8037) == 0);
	if (web_hosts_has(&h, text))
		CHECK(strlen(text) == strlen("localhost:8037"));
	if (web_hosts_is_origin(&h, text))
		CHECK(strlen(text) == strlen("http://localhost:8037"));
	if (web_authorized(TOKEN, text))
		CHECK(strlen(text) >= strlen("Basic ") + strlen(TOKEN));
	(void)web_metrics_form(text);
	if (web_routes_find(text) != NULL)
		CHECK(text[0] == '/');
}

static void
take_search(struct web_query *q, const char *text)
{
	static const char *const names[] = { "machine", "at", "around", "from",
		"to", "trigger", "process", "recording", "path", "lost" };
	char *part;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (asprintf(&part, "%s=%s", names[i], text) < 0)
			return;
		web_query_take(q, part);
		free(part);
	}
	CHECK(strlen(q->archive.machine) < WEB_SEARCH_MAX);
	CHECK(strlen(q->archive.path) < WEB_PATH_MAX);
	CHECK(is_shown(q->archive.machine));
	CHECK(is_shown(q->archive.path));
}

static void
check_query(const char *text)
{
	char *page = NULL, *part;
	struct web_snapshot s = { .why = "" };
	struct web_query q;
	size_t size;
	FILE *out;

	web_query_init(&q);
	web_query_take(&q, text);
	if (asprintf(&part, "q=%s", text) < 0)
		return;
	web_query_take(&q, part);
	free(part);
	take_search(&q, text);
	CHECK(strlen(q.search) < WEB_SEARCH_MAX);
	CHECK(is_shown(q.search));
	CHECK(q.page >= 1 && q.page <= WEB_PAGE_MOST);
	CHECK(q.refresh_s <= WEB_REFRESH_MOST_S);
	if ((out = open_memstream(&page, &size)) == NULL)
		return;
	web_html_text(out, text);
	fclose(out);
	CHECK(strpbrk(page, "<>\"'") == NULL);
	free(page);
	/* What is searched for comes back as a link. */
	if ((out = open_memstream(&page, &size)) == NULL)
		return;
	web_archive_put_link(out, "/archive", &q.archive, 2);
	fclose(out);
	CHECK(strpbrk(page, "<>\"' ") == NULL);
	free(page);
	if ((out = open_memstream(&page, &size)) == NULL)
		return;
	web_page_print(out, &s, &q, text, true, 0);
	fclose(out);
	CHECK(strstr(page, "<script") == NULL);
	free(page);
}

void
fuzz_web(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (text == NULL)
		return;
	memcpy(text, data, size);
	text[size] = '\0';
	check_doors(text);
	check_query(text);
	free(text);
}
