/*
 * report: the results of an inspection, as text for people and as JSON
 * for programs.
 */
#ifndef CLIENT_INSPECT_REPORT_REPORT_H
#define CLIENT_INSPECT_REPORT_REPORT_H

#include <stdio.h>

struct inspect_verdict;
struct inspection;

/* Names that come from peers are escaped. */
void inspect_report_text(FILE *out, const struct inspection *i,
    const struct inspect_verdict *v, const char *path);
/* One line of JSON; the manual page documents its members. */
void inspect_report_json(FILE *out, const struct inspection *i,
    const struct inspect_verdict *v, const char *path);

#endif /* CLIENT_INSPECT_REPORT_REPORT_H */
