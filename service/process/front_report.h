/*
 * front_report: the part of QueryMetrics that the service does not know itself:
 * connections, certificates, the folders that traces are written to.
 */
#ifndef SERVICE_PROCESS_FRONT_REPORT_H
#define SERVICE_PROCESS_FRONT_REPORT_H

#include <stdbool.h>

struct certificates;
struct gate;
struct service;

struct front_report {
	struct service *service;
	const struct gate *gate;
	const struct certificates *certificates; /* NULL: none */
	struct front_folder {
		int fd;     /* that was looked at; -1: none */
		bool local; /* disk_free.h */
	} trace_dir, archive_dir;
};

/* Has the service call it, for as long as the service lives. */
void front_report_init(struct front_report *r, struct service *s,
    const struct gate *g, const struct certificates *c);

#endif /* SERVICE_PROCESS_FRONT_REPORT_H */
