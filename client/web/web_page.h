/*
 * web_page: the overview as HTML: healthy or not and why, recordings, sessions,
 * machines, losses, top talkers, refusals.  Pure, but for the file that it
 * prints to.
 *
 * Works without scripts.  Everything from the collector and its peers is
 * escaped; tables are bounded, machines come in pages.
 */
#ifndef CLIENT_WEB_WEB_PAGE_H
#define CLIENT_WEB_WEB_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct web_query;
struct web_snapshot;

/* Machines of one page; rows of the other tables. */
#define WEB_PAGE_MACHINES 50u
#define WEB_PAGE_ROWS     200u
#define WEB_PAGE_TALKERS  10u

/*
 * collector: its address, for the head; borrowed, as the rest.  has_archive:
 * there is a page to be linked to.
 */
void web_page_print(FILE *out, const struct web_snapshot *s,
    const struct web_query *q, const char *collector, bool has_archive,
    uint64_t now_s);

/* /style.css; static. */
const char *web_page_style(void);
/* /archive.js, which opens traces in Perfetto's UI; static. */
const char *web_page_script(void);

#endif /* CLIENT_WEB_WEB_PAGE_H */
