/*
 * settings_quota: reads the quotas of machines and their producers from the
 * settings.  For settings*.c only; other files include settings.h.
 */
#ifndef SERVICE_SETTINGS_SETTINGS_QUOTA_H
#define SERVICE_SETTINGS_SETTINGS_QUOTA_H

#include <stddef.h>

#include "protos/settings.pb-c.h"
#include "transport/base/compiler.h"

struct settings;

/* Copies q to the end of s->quotas.  -1 with a sentence in err. */
int settings_add_quota(struct settings *s, const Tributary__Quota *q,
    char *err, size_t err_size) MUST_CHECK;
void settings_quota_done(struct settings *s);

#endif /* SERVICE_SETTINGS_SETTINGS_QUOTA_H */
