/*
 * web_health: whether a collector is healthy, and if not why, in sentences.
 * Pure.
 */
#ifndef CLIENT_WEB_WEB_HEALTH_H
#define CLIENT_WEB_WEB_HEALTH_H

#include <stddef.h>
#include <stdint.h>

struct web_snapshot;

#define WEB_PROBLEMS_MAX 24u
#define WEB_PROBLEM_MAX  600u

struct web_health {
	char problems[WEB_PROBLEMS_MAX][WEB_PROBLEM_MAX];
	size_t n; /* 0: healthy */
	size_t more; /* problems that found no room */
};

/*
 * Judges what is now: losses of long ago are no problem of today.  now_s: time
 * in seconds since 1970.
 */
void web_health_judge(struct web_health *h, const struct web_snapshot *s,
    uint64_t now_s);

/*
 * Hours that a folder ("archive_dir") lasts at the present rate of its
 * recordings, if nothing is deleted; < 0: unknown, or nothing is written.
 */
double web_health_hours_left(const struct web_snapshot *s, const char *folder);

#endif /* CLIENT_WEB_WEB_HEALTH_H */
