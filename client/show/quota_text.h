/*
 * quota_text: what a collector's quotas did to a machine or a producer, for
 * people and as JSON.
 */
#ifndef CLIENT_SHOW_QUOTA_TEXT_H
#define CLIENT_SHOW_QUOTA_TEXT_H

#include <stdio.h>

#include "protos/control.pb-c.h"

struct json_out;

/* Lines of a block, as in `tributary machines -v`. */
void quota_text_print(FILE *out, const Tributary__QuotaState *q);
/* The member "quota" of an object. */
void quota_text_json(struct json_out *j, const Tributary__QuotaState *q);

#endif /* CLIENT_SHOW_QUOTA_TEXT_H */
