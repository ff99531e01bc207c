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

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct web_query;
struct web_snapshot;

/* Machines of one page; rows of the other tables. */
#define WEB_PAGE_MACHINES 50u
#define WEB_PAGE_ROWS     200u
#define WEB_PAGE_TALKERS  10u

/* collector: its address, for the head; borrowed, as the rest. */
void web_page_print(FILE *out, const struct web_snapshot *s,
    const struct web_query *q, const char *collector, uint64_t now_s);

/* /style.css; static. */
const char *web_page_style(void);

/* Text as HTML has it, for contents and quoted values alike. */
void web_page_text(FILE *out, const char *text);

#endif /* CLIENT_WEB_WEB_PAGE_H */
