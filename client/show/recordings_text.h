/*
 * recordings_text: the standing recordings of a collector, for people and as
 * JSON.  Pure but for the file that it prints to.
 */
#ifndef CLIENT_SHOW_RECORDINGS_TEXT_H
#define CLIENT_SHOW_RECORDINGS_TEXT_H

#include <stdio.h>

#include "client/command/command_line.h"

struct Tributary__QueryRecordingsReply;

void recordings_print(FILE *out,
    const struct Tributary__QueryRecordingsReply *r, enum list_form form);

#endif /* CLIENT_SHOW_RECORDINGS_TEXT_H */
