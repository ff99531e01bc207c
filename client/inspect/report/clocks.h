/*
 * clocks: sections of the reports about the clocks of a trace and of
 * its machines, from its clock snapshots.
 */
#ifndef CLIENT_INSPECT_REPORT_CLOCKS_H
#define CLIENT_INSPECT_REPORT_CLOCKS_H

#include <stdio.h>

struct inspection;
struct json_out;

void inspect_clocks_text(FILE *out, const struct inspection *i);
void inspect_clocks_json(struct json_out *j, const struct inspection *i);

#endif /* CLIENT_INSPECT_REPORT_CLOCKS_H */
