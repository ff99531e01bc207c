#include "client/upload/s3/s3_place.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protos/utf8.h"
#include "transport/base/failure.h"

#define SCHEME "s3://"
#define BUCKET_MARK "%bucket"
#define DEFAULT_REGION "us-east-1"

/* ---- encoding ---- */

static bool
is_unreserved(unsigned char c)
{
	return isalnum(c) || c == '-' || c == '_' || c == '.' || c == '~';
}

/* A path keeps its slashes. */
static void
put_encoded(FILE *out, const char *text, bool is_path)
{
	const unsigned char *c;

	for (c = (const unsigned char *)text; *c != '\0'; c++)
		if (is_unreserved(*c) || (is_path && *c == '/'))
			fputc(*c, out);
		else
			fprintf(out, "%%%02X", *c);
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void
s3_unescape(char *text)
{
	char *to = text;

	for (; *text != '\0'; text++) {
		if (*text == '%' && hex_digit(text[1]) >= 0 &&
		    hex_digit(text[2]) >= 0) {
			*to++ = (char)(hex_digit(text[1]) * 16 +
			    hex_digit(text[2]));
			text += 2;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

/* Closes a memory stream; NULL: no memory, and *text is freed. */
static char *
closed(FILE *out, char **text)
{
	bool failed = ferror(out) != 0;

	if (fclose(out) == 0 && !failed)
		return *text;
	free(*text);
	return NULL;
}

/* ---- where ---- */

static bool
is_bucket(const char *name)
{
	size_t i, len = strlen(name);

	if (len < 3 || len > S3_BUCKET_MAX || name[0] == '.')
		return false;
	for (i = 0; i < len; i++)
		if (!is_unreserved((unsigned char)name[i]) || name[i] == '~')
			return false;
	return true;
}

/* Parts between slashes: none of them empty, "." or "..". */
static bool
has_plain_parts(const char *path)
{
	size_t len;

	for (;; path += len + 1) {
		len = strcspn(path, "/");
		if (len == 0 || (len == 1 && path[0] == '.') ||
		    (len == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		if (path[len] == '\0')
			return true;
	}
}

static int
take_url(struct s3_place *p, const char *url, char *err, size_t err_size)
{
	const char *bucket, *prefix;
	size_t len;

	if (strncmp(url, SCHEME, strlen(SCHEME)) != 0)
		return FAILURE(err, err_size, "\"%s\" is no place for "
		    "objects: write s3://bucket/prefix", url);
	bucket = url + strlen(SCHEME);
	len = strcspn(bucket, "/");
	prefix = bucket[len] == '/' ? bucket + len + 1 : "";
	if ((p->bucket = strndup(bucket, len)) == NULL)
		return FAILURE(err, err_size, "no memory");
	if (!is_bucket(p->bucket))
		return FAILURE(err, err_size, "\"%s\" names no bucket: a "
		    "bucket's name has 3 to 63 letters, digits, dots and "
		    "hyphens", url);
	len = strlen(prefix);
	if (len > 0 && prefix[len - 1] == '/')
		len--;
	if (asprintf(&p->prefix, "%.*s%s", (int)len, prefix,
		len > 0 ? "/" : "") < 0) {
		p->prefix = NULL;
		return FAILURE(err, err_size, "no memory");
	}
	if (len == 0)
		return 0;
	p->prefix[len] = '\0';
	if (len > S3_KEY_MAX / 2 || !has_plain_parts(p->prefix))
		return FAILURE(err, err_size, "\"%s\": a prefix has at most "
		    "%u bytes, and parts that are neither empty nor \".\" or "
		    "\"..\"", url, S3_KEY_MAX / 2);
	p->prefix[len] = '/';
	return 0;
}

static int
take_region(struct s3_place *p, const char *region, char *err,
    size_t err_size)
{
	const char *c;

	if (region == NULL)
		region = DEFAULT_REGION;
	for (c = region; *c != '\0'; c++)
		if (!isalnum((unsigned char)*c) && *c != '-' && *c != '_')
			break;
	if (*c != '\0' || c == region || c - region > 63)
		return FAILURE(err, err_size, "region \"%s\": a region has "
		    "letters, digits and hyphens", region);
	if ((p->region = strdup(region)) == NULL)
		return FAILURE(err, err_size, "no memory");
	return 0;
}

/* "https://host[:port]" and perhaps a slash, with at most one mark. */
static bool
is_endpoint(const char *endpoint, const char **host, const char **mark)
{
	const char *c;

	if (strncmp(endpoint, "https://", 8) == 0)
		*host = endpoint + 8;
	else if (strncmp(endpoint, "http://", 7) == 0)
		*host = endpoint + 7;
	else
		return false;
	*mark = strstr(*host, BUCKET_MARK);
	for (c = *host; *c != '\0' && *c != '/'; c++) {
		if (c == *mark)
			c += strlen(BUCKET_MARK) - 1;
		else if (!isalnum((unsigned char)*c) &&
		    strchr(".-_:[]", *c) == NULL)
			return false;
	}
	return c > *host && (*c == '\0' || c[1] == '\0');
}

static int
take_endpoint(struct s3_place *p, const char *endpoint, char *err,
    size_t err_size)
{
	char amazon[160];
	const char *host = NULL, *mark = NULL;
	int len, n;

	if (endpoint == NULL) {
		/* A certificate for *.host fits no bucket with a dot. */
		snprintf(amazon, sizeof(amazon),
		    "https://%ss3.%s.amazonaws.com",
		    strchr(p->bucket, '.') == NULL ? BUCKET_MARK "." : "",
		    p->region);
		endpoint = amazon;
	}
	if (!is_endpoint(endpoint, &host, &mark))
		return FAILURE(err, err_size, "endpoint \"%s\": write "
		    "https://host or https://host:port, without a path",
		    endpoint);
	len = (int)(host - endpoint + (int)strcspn(host, "/"));
	if (mark == NULL)
		n = asprintf(&p->base, "%.*s/%s/", len, endpoint, p->bucket);
	else
		n = asprintf(&p->base, "%.*s%s%.*s/", (int)(mark - endpoint),
		    endpoint, p->bucket,
		    len - (int)(mark - endpoint) - (int)strlen(BUCKET_MARK),
		    mark + strlen(BUCKET_MARK));
	if (n >= 0)
		return 0;
	p->base = NULL;
	return FAILURE(err, err_size, "no memory");
}

int
s3_place_init(struct s3_place *p, const char *url, const char *endpoint,
    const char *region, char *err, size_t err_size)
{
	*p = (struct s3_place){ 0 };
	if (take_url(p, url, err, err_size) == 0 &&
	    take_region(p, region, err, err_size) == 0 &&
	    take_endpoint(p, endpoint, err, err_size) == 0)
		return 0;
	s3_place_done(p);
	return -1;
}

void
s3_place_done(struct s3_place *p)
{
	free(p->base);
	free(p->bucket);
	free(p->prefix);
	free(p->region);
	*p = (struct s3_place){ 0 };
}

bool
s3_place_is_bare(const struct s3_place *p)
{
	static const char *const loopback[] = { "localhost", "127.0.0.1",
		"[::1]" };
	const char *host = p->base + strlen("http://");
	size_t i, len;

	if (strncmp(p->base, "http://", strlen("http://")) != 0)
		return false;
	for (i = 0; i < sizeof(loopback) / sizeof(loopback[0]); i++) {
		len = strlen(loopback[i]);
		if (strncmp(host, loopback[i], len) == 0 &&
		    (host[len] == ':' || host[len] == '/'))
			return false;
	}
	return true;
}

/* ---- keys ---- */

static bool
is_utf8(const char *text)
{
	size_t left = strlen(text), n;

	for (; left > 0; text += n, left -= n)
		if ((n = utf8_char(text, left)) == 0)
			return false;
	return true;
}

int
s3_place_key(const struct s3_place *p, const char *path,
    char key[S3_KEY_MAX + 1], char *err, size_t err_size)
{
	size_t len = strlen(p->prefix) + strlen(path);

	if (len > S3_KEY_MAX)
		return FAILURE(err, err_size, "its name would have %zu bytes "
		    "in the store, which takes at most %u", len, S3_KEY_MAX);
	if (!has_plain_parts(path))
		return FAILURE(err, err_size, "its path has an empty part, "
		    "\".\" or \"..\"");
	if (!is_utf8(path))
		return FAILURE(err, err_size, "its name is not UTF-8, which "
		    "the store wants");
	snprintf(key, S3_KEY_MAX + 1, "%s%s", p->prefix, path);
	return 0;
}

const char *
s3_place_key_of(const struct s3_place *p, const char *url)
{
	size_t len = strlen(p->bucket);

	if (strncmp(url, SCHEME, strlen(SCHEME)) != 0)
		return NULL;
	url += strlen(SCHEME);
	if (strncmp(url, p->bucket, len) != 0 || url[len] != '/' ||
	    url[len + 1] == '\0')
		return NULL;
	return url + len + 1;
}

char *
s3_place_url_of(const struct s3_place *p, const char *key)
{
	char *url;

	return asprintf(&url, SCHEME "%s/%s", p->bucket, key) < 0 ? NULL : url;
}

/* ---- requests ---- */

static int
by_name(const void *a, const void *b)
{
	const struct s3_parameter *x = a, *y = b;

	return strcmp(x->name, y->name);
}

char *
s3_place_request(const struct s3_place *p, const char *key,
    const struct s3_parameter *parameters, size_t n)
{
	struct s3_parameter sorted[S3_PARAMETERS_MAX];
	char *text = NULL;
	size_t i, size;
	FILE *out;

	if (n > S3_PARAMETERS_MAX ||
	    (out = open_memstream(&text, &size)) == NULL)
		return NULL;
	memset(sorted, 0, sizeof(sorted));
	if (n > 0)
		memcpy(sorted, parameters, n * sizeof(*parameters));
	qsort(sorted, n, sizeof(sorted[0]), by_name);
	fputs(p->base, out);
	put_encoded(out, key, true);
	for (i = 0; i < n; i++) {
		fputc(i == 0 ? '?' : '&', out);
		put_encoded(out, sorted[i].name, false);
		fputc('=', out);
		if (sorted[i].value != NULL)
			put_encoded(out, sorted[i].value, false);
	}
	return closed(out, &text);
}
