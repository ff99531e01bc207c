/*
 * web_open: the one file that `tributary open` shows in Perfetto's UI: the file,
 * the address that has the UI fetch it, and the browser that goes there.
 */
#ifndef CLIENT_WEB_WEB_OPEN_H
#define CLIENT_WEB_WEB_OPEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/base/compiler.h"

/* The one port of http://127.0.0.1 that the UI's own policy lets it ask. */
#define WEB_OPEN_LISTEN "127.0.0.1:9001"

#define WEB_OPEN_NAME_MAX 128u

struct web_open {
	int fd; /* owned; -1: there is none */
	uint64_t bytes;
	char name[WEB_OPEN_NAME_MAX]; /* of letters that no address escapes */
};

/* Opens it.  -1 with a sentence: no regular file, or an empty one. */
int web_open_file(struct web_open *o, const char *path, char *err,
    size_t err_size) MUST_CHECK;
void web_open_close(struct web_open *o);
/*
 * Sets out, of size bytes, to the last part of a path, in letters that neither
 * an address nor a header gives a meaning.
 */
void web_open_name(char *out, size_t size, const char *path);

/*
 * Starts $BROWSER, or xdg-open where there is a screen, with an address.  False:
 * there is none.  Not to be called once system calls are confined.
 */
bool web_open_browser(const char *address);

#endif /* CLIENT_WEB_WEB_OPEN_H */
