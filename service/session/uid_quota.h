/*
 * uid_quota: how many of something each uid has, and no more than it may.
 */
#ifndef SERVICE_SESSION_UID_QUOTA_H
#define SERVICE_SESSION_UID_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/compiler.h"

/* Zero-initialised is ready to use. */
struct uid_quota {
	struct uid_count {
		uint32_t uid;
		uint32_t n; /* never 0 */
	} *counts; /* owned */
	size_t n;
	size_t cap;
};

/* Takes one for uid.  False: it has `most` already, or no memory. */
bool uid_quota_take(struct uid_quota *q, uint32_t uid, uint32_t most)
    MUST_CHECK;
/* Gives one back that was taken. */
void uid_quota_give(struct uid_quota *q, uint32_t uid);
void uid_quota_done(struct uid_quota *q);

#endif /* SERVICE_SESSION_UID_QUOTA_H */
