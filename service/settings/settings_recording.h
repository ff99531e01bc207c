/*
 * settings_recording: reads the standing recordings from the settings.  For
 * settings*.c only; other files include settings.h.
 */
#ifndef SERVICE_SETTINGS_SETTINGS_RECORDING_H
#define SERVICE_SETTINGS_SETTINGS_RECORDING_H

#include <stddef.h>

#include "protos/settings.pb-c.h"
#include "transport/base/compiler.h"

struct settings;

/*
 * Copies r to the end of s->recordings.  file: the settings file, from whose
 * folder config_file is looked for.  -1 with a sentence in err.
 */
int settings_add_recording(struct settings *s, const Tributary__Recording *r,
    const char *file, char *err, size_t err_size) MUST_CHECK;
void settings_recordings_done(struct settings *s);

#endif /* SERVICE_SETTINGS_SETTINGS_RECORDING_H */
