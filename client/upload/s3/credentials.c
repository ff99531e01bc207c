#include "client/upload/s3/credentials.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/base/failure.h"

static void
forget(char *text)
{
	if (text != NULL)
		explicit_bzero(text, strlen(text));
	free(text);
}

void
credentials_done(struct credentials *c)
{
	forget(c->key);
	forget(c->secret);
	forget(c->token);
	*c = (struct credentials){ 0 };
}

/* The last one counts, as in Amazon's programs; an empty one is none. */
static int
keep(char **slot, const char *value)
{
	forget(*slot);
	*slot = NULL;
	if (value == NULL || *value == '\0')
		return 0;
	return (*slot = strdup(value)) != NULL ? 0 : -1;
}

/* Cuts spaces at both ends, in place. */
static char *
trimmed(char *text)
{
	size_t len;

	while (isspace((unsigned char)*text))
		text++;
	for (len = strlen(text); len > 0 &&
	    isspace((unsigned char)text[len - 1]); len--)
		;
	text[len] = '\0';
	return text;
}

static int
take_line(struct credentials *c, char *line, bool *is_ours)
{
	char *value;

	line = trimmed(line);
	if (*line == '[') {
		*is_ours = strcmp(line, "[default]") == 0;
		return 0;
	}
	if (!*is_ours || *line == '#' || *line == ';' ||
	    (value = strchr(line, '=')) == NULL)
		return 0;
	*value++ = '\0';
	line = trimmed(line);
	value = trimmed(value);
	if (strcmp(line, "aws_access_key_id") == 0)
		return keep(&c->key, value);
	if (strcmp(line, "aws_secret_access_key") == 0)
		return keep(&c->secret, value);
	if (strcmp(line, "aws_session_token") == 0)
		return keep(&c->token, value);
	return 0;
}

static int
take_lines(struct credentials *c, char *text)
{
	bool is_ours = true;
	char *line;

	while ((line = strsep(&text, "\n")) != NULL)
		if (take_line(c, line, &is_ours) != 0)
			return -1;
	return 0;
}

/* Bytes of the file, at most size - 1; -1 with a sentence. */
static ssize_t
read_file(const char *file, char *text, size_t size, char *err,
    size_t err_size)
{
	struct stat st;
	ssize_t n = -1;
	int fd;

	fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) != 0) {
		snprintf(err, err_size, "credentials_file %s: %s", file,
		    strerror(errno));
		goto out;
	}
	if (!S_ISREG(st.st_mode) || (size_t)st.st_size >= size) {
		snprintf(err, err_size, "credentials_file %s is no file of "
		    "credentials: it is not a regular file of at most %zu "
		    "bytes", file, size - 1);
		goto out;
	}
	if ((st.st_mode & S_IRWXO) != 0) {
		snprintf(err, err_size, "credentials_file %s is open to every "
		    "user of this machine: chmod o= %s", file, file);
		goto out;
	}
	if ((n = read(fd, text, size - 1)) < 0)
		snprintf(err, err_size, "credentials_file %s: %s", file,
		    strerror(errno));
out:
	if (fd >= 0)
		close(fd);
	return n;
}

static int
load_file(struct credentials *c, const char *file, char *err, size_t err_size)
{
	char *text = malloc(CREDENTIALS_FILE_MAX + 1);
	int rc = -1;
	ssize_t n;

	if (text == NULL)
		return FAILURE(err, err_size, "no memory");
	n = read_file(file, text, CREDENTIALS_FILE_MAX + 1, err, err_size);
	if (n >= 0) {
		text[n] = '\0';
		rc = take_lines(c, text);
		if (rc != 0)
			snprintf(err, err_size, "no memory");
	}
	explicit_bzero(text, CREDENTIALS_FILE_MAX + 1);
	free(text);
	return rc;
}

static int
check(const struct credentials *c, const char *file, char *err,
    size_t err_size)
{
	if (c->key != NULL && c->secret != NULL)
		return 0;
	if (file != NULL)
		return FAILURE(err, err_size, "credentials_file %s has no "
		    "%s in its section [default]", file, c->key == NULL ?
		    "aws_access_key_id" : "aws_secret_access_key");
	return FAILURE(err, err_size, "there are no credentials: set "
	    "credentials_file, or AWS_ACCESS_KEY_ID and "
	    "AWS_SECRET_ACCESS_KEY in the environment");
}

int
credentials_load(struct credentials *c, const char *file, char *err,
    size_t err_size)
{
	int rc;

	*c = (struct credentials){ 0 };
	if (file != NULL)
		rc = load_file(c, file, err, err_size);
	else if (keep(&c->key, getenv("AWS_ACCESS_KEY_ID")) != 0 ||
	    keep(&c->secret, getenv("AWS_SECRET_ACCESS_KEY")) != 0 ||
	    keep(&c->token, getenv("AWS_SESSION_TOKEN")) != 0)
		rc = FAILURE(err, err_size, "no memory");
	else
		rc = 0;
	if (rc == 0 && check(c, file, err, err_size) == 0)
		return 0;
	credentials_done(c);
	return -1;
}
