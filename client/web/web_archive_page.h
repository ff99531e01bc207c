/*
 * web_archive_page: an archive's catalogue as HTML: search, a time line for each
 * machine, segments.  Opens the catalogue, to read; of any thread.
 *
 * Bounded, however large the archive is: it shows the newest segments of what
 * is asked for, and says where there are more.
 */
#ifndef CLIENT_WEB_WEB_ARCHIVE_PAGE_H
#define CLIENT_WEB_WEB_ARCHIVE_PAGE_H

#include <stdint.h>
#include <stdio.h>

#include "client/web/web_request.h"
#include "transport/base/compiler.h"

/* Segments of one page; of the time line, and so of all pages. */
#define WEB_ARCHIVE_ROWS 50u
#define WEB_ARCHIVE_MOST 2000u

struct web_archive_place;

struct web_archive_asked {
	const struct web_archive_place *place;
	const char *ui; /* origin of Perfetto's UI */
	const struct web_search *search;
	uint32_t page; /* from 1 */
};

/* Returns the status of HTTP; a failure is told in the page. */
unsigned web_archive_page_print(FILE *out, const struct web_archive_asked *a)
    MUST_CHECK;
/* The page's address, as a link has it, with a search and another page. */
void web_archive_put_link(FILE *out, const char *path,
    const struct web_search *s, uint32_t page);

#endif /* CLIENT_WEB_WEB_ARCHIVE_PAGE_H */
