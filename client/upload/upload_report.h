/*
 * upload_report: the file in an archive's folder that says how its uploader
 * fares, and keeps a second uploader away.
 *
 * The file is locked as long as the uploader lives, whatever ends it.
 */
#ifndef CLIENT_UPLOAD_UPLOAD_REPORT_H
#define CLIENT_UPLOAD_UPLOAD_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "protos/upload_report.pb-c.h"
#include "transport/base/compiler.h"

#define UPLOAD_REPORT_FILE ".tributary-upload"

/*
 * Opens and locks the file of a folder, made if it is missing.  -1 with a
 * sentence: no such folder, or another uploader has it.
 */
int upload_report_open(const char *folder, char *err, size_t err_size)
    MUST_CHECK;
/* Replaces what the file says.  A failure is the reader's to notice. */
void upload_report_write(int fd, const Tributary__UploadReport *report);

/*
 * Prints the report of a folder.  Returns an exit status; 1 with a line on
 * standard error: no uploader runs there.
 */
int upload_report_show(const char *folder, bool json);

#endif /* CLIENT_UPLOAD_UPLOAD_REPORT_H */
