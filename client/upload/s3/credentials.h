/*
 * credentials: the keys that requests are signed with, from a file or the
 * environment.  No function here writes one of them anywhere.
 */
#ifndef CLIENT_UPLOAD_S3_CREDENTIALS_H
#define CLIENT_UPLOAD_S3_CREDENTIALS_H

#include <stddef.h>

#include "transport/base/compiler.h"

/* Owned; token is NULL where there is none. */
struct credentials {
	char *key;
	char *secret;
	char *token;
};

/*
 * file: as of Amazon's programs, the keys of its section "default" or of none:
 *
 *	[default]
 *	aws_access_key_id = ...
 *	aws_secret_access_key = ...
 *	aws_session_token = ...
 *
 * A file that every user can read is refused.  NULL: AWS_ACCESS_KEY_ID,
 * AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the environment.  -1 with a
 * sentence in err that holds no value of any of them; *c is then empty.
 */
int credentials_load(struct credentials *c, const char *file, char *err,
    size_t err_size) MUST_CHECK;
/* Overwrites and frees them. */
void credentials_done(struct credentials *c);

/* The largest file of credentials, in bytes. */
#define CREDENTIALS_FILE_MAX 65536u

#endif /* CLIENT_UPLOAD_S3_CREDENTIALS_H */
