/*
 * s3_outcome: what an answer of the store means for its caller.  Pure.
 */
#ifndef CLIENT_UPLOAD_S3_S3_OUTCOME_H
#define CLIENT_UPLOAD_S3_S3_OUTCOME_H

enum s3_outcome {
	S3_OK,
	S3_ABSENT,  /* no such object or upload */
	S3_EXISTS,  /* a condition did not hold: there is an object already */
	S3_DAMAGED, /* what arrived, or what is there, is not what was meant */
	S3_BUSY,    /* may work later: no answer, 429, 5xx, a time-out */
	S3_DENIED,  /* credentials, rights, or this machine's clock */
	S3_REFUSED, /* will not work as it is: other answers below 500 */
	S3_STOPPED, /* this program is to end */
};

/*
 * status: of HTTP; 0: there was no answer.  code: of the error in the body, or
 * "".
 */
enum s3_outcome s3_outcome_of(long status, const char *code);

/* "busy", "denied" ...: one word for logs and reports. */
const char *s3_outcome_name(enum s3_outcome o);

#endif /* CLIENT_UPLOAD_S3_S3_OUTCOME_H */
