/*
 * quota_text: the state of a machine's or producer's quotas, for people and as
 * JSON.
 */
#ifndef CLIENT_SHOW_QUOTA_TEXT_H
#define CLIENT_SHOW_QUOTA_TEXT_H

#include <stdio.h>

#include "protos/control.pb-c.h"

struct json_out;

/* Prints lines of a block, as in `tributary machines -v`. */
void quota_text_print(FILE *out, const Tributary__QuotaState *q);
/* Writes the member "quota" of the current object. */
void quota_text_json(struct json_out *j, const Tributary__QuotaState *q);

#endif /* CLIENT_SHOW_QUOTA_TEXT_H */
