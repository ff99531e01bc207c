#include "client/upload/s3/s3_digest.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <unistd.h>

#define READ_SIZE (256u * 1024)

const char s3_digest_of_nothing[S3_HEX_SHA256 + 1] =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

void
s3_hex(char *hex, const uint8_t *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	size_t i;

	for (i = 0; i < len; i++) {
		*hex++ = digits[bytes[i] >> 4];
		*hex++ = digits[bytes[i] & 15];
	}
	*hex = '\0';
}

int
s3_digest_init(struct s3_digest *d, enum s3_digest_kind kind)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();

	d->context = NULL;
	if (context == NULL)
		return -1;
	if (EVP_DigestInit_ex(context, kind == S3_SHA256 ? EVP_sha256() :
		EVP_md5(), NULL) != 1) {
		EVP_MD_CTX_free(context);
		return -1;
	}
	d->context = context;
	return 0;
}

void
s3_digest_add(struct s3_digest *d, const void *bytes, size_t len)
{
	if (d->context != NULL)
		(void)EVP_DigestUpdate(d->context, bytes, len);
}

void
s3_digest_hex(const struct s3_digest *d, char *hex, size_t hex_size)
{
	uint8_t bytes[EVP_MAX_MD_SIZE];
	EVP_MD_CTX *copy = EVP_MD_CTX_new();
	unsigned len = 0;

	*hex = '\0';
	if (copy != NULL && d->context != NULL &&
	    EVP_MD_CTX_copy_ex(copy, d->context) == 1 &&
	    EVP_DigestFinal_ex(copy, bytes, &len) == 1 &&
	    hex_size > 2 * (size_t)len)
		s3_hex(hex, bytes, len);
	EVP_MD_CTX_free(copy);
}

void
s3_digest_done(struct s3_digest *d)
{
	EVP_MD_CTX_free(d->context);
	d->context = NULL;
}

int
s3_digest_of(const void *bytes, size_t len, char hex[S3_HEX_SHA256 + 1])
{
	struct s3_digest d;

	if (s3_digest_init(&d, S3_SHA256) != 0)
		return -1;
	s3_digest_add(&d, bytes, len);
	s3_digest_hex(&d, hex, S3_HEX_SHA256 + 1);
	s3_digest_done(&d);
	return 0;
}

int
s3_digest_add_file(struct s3_digest *const *digests, size_t n, int fd,
    int64_t offset, uint64_t size)
{
	char *buffer = malloc(READ_SIZE);
	ssize_t got = 0;
	size_t i;

	for (; buffer != NULL && size > 0;
	    offset += got, size -= (uint64_t)got) {
		got = pread(fd, buffer, size < READ_SIZE ? (size_t)size :
		    READ_SIZE, (off_t)offset);
		if (got == 0)
			errno = EIO;
		if (got <= 0)
			break;
		for (i = 0; i < n; i++)
			s3_digest_add(digests[i], buffer, (size_t)got);
	}
	free(buffer);
	return buffer != NULL && size == 0 ? 0 : -1;
}
