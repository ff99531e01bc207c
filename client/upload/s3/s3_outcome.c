#include "client/upload/s3/s3_outcome.h"

#include <stddef.h>
#include <string.h>

/* Codes that say more than the status that they come with. */
static const struct {
	const char *code;
	enum s3_outcome outcome;
} codes[] = {
	{ "BadDigest", S3_DAMAGED },
	{ "ExpiredToken", S3_DENIED },
	{ "InvalidAccessKeyId", S3_DENIED },
	{ "InvalidToken", S3_DENIED },
	/* Another request for this key is under way. */
	{ "ConditionalRequestConflict", S3_BUSY },
	{ "OperationAborted", S3_BUSY },
	{ "NoSuchBucket", S3_REFUSED },
	/* The body came too slowly. */
	{ "RequestTimeout", S3_BUSY },
	{ "SlowDown", S3_BUSY },
	{ "TokenRefreshRequired", S3_DENIED },
	{ "XAmzContentSHA256Mismatch", S3_DAMAGED },
};

enum s3_outcome
s3_outcome_of(long status, const char *code)
{
	size_t i;

	if (status >= 200 && status < 300 && *code == '\0')
		return S3_OK;
	for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (strcmp(codes[i].code, code) == 0)
			return codes[i].outcome;
	/* 200 with an error, as CompleteMultipartUpload may end. */
	if (status < 300 || status >= 500 || status == 408 || status == 429)
		return S3_BUSY;
	if (status == 404)
		return S3_ABSENT;
	if (status == 412)
		return S3_EXISTS;
	return status == 401 || status == 403 ? S3_DENIED : S3_REFUSED;
}

const char *
s3_outcome_name(enum s3_outcome o)
{
	static const char *const names[] = {
		[S3_OK] = "ok",
		[S3_ABSENT] = "absent",
		[S3_EXISTS] = "exists",
		[S3_DAMAGED] = "damaged",
		[S3_BUSY] = "busy",
		[S3_DENIED] = "denied",
		[S3_REFUSED] = "refused",
		[S3_STOPPED] = "stopped",
	};

	return names[o];
}
