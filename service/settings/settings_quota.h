/*
 * settings_quota: the part of the settings that says what machines and their
 * producers may take.  For settings*.c only; everybody else reads settings.h.
 */
#ifndef SERVICE_SETTINGS_SETTINGS_QUOTA_H
#define SERVICE_SETTINGS_SETTINGS_QUOTA_H

#include <stddef.h>

#include "protos/settings.pb-c.h"
#include "transport/base/compiler.h"

struct settings;

/* Copies q to the end.  -1 with a sentence. */
int settings_add_quota(struct settings *s, const Tributary__Quota *q,
    char *err, size_t err_size) MUST_CHECK;
void settings_quota_done(struct settings *s);

#endif /* SERVICE_SETTINGS_SETTINGS_QUOTA_H */
