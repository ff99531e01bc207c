/* snapshot: `tributary snapshot`, saves a clone of a session to a file. */
#ifndef CLIENT_RECORD_SNAPSHOT_H
#define CLIENT_RECORD_SNAPSHOT_H

#include <stddef.h>
#include <time.h>

int snapshot_main(int argc, char **argv);

/*
 * Default file name of a snapshot: the session's name, or session-ID, and the
 * local time: "flight-20260324-145501.pftrace".  Characters that are awkward in
 * file names become underscores.  Returns out.
 */
char *snapshot_file_name(char *out, size_t out_size, const char *session,
    const struct tm *now);

#endif /* CLIENT_RECORD_SNAPSHOT_H */
