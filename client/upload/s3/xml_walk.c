#include "client/upload/s3/xml_walk.h"

#include <expat.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

struct walk {
	XML_Parser parser;
	int (*fn)(void *arg, const char *path, const char *text);
	void *arg;
	char path[XML_WALK_PATH_MAX];
	size_t path_len;
	char text[XML_WALK_TEXT_MAX];
	size_t text_len;
	bool failed;
};

static void
fail(struct walk *w)
{
	w->failed = true;
	XML_StopParser(w->parser, XML_FALSE);
}

static void XMLCALL
start_cb(void *arg, const XML_Char *name, const XML_Char **attributes)
{
	struct walk *w = arg;
	size_t len = strlen(name);

	if (w->path_len + 1 + len >= sizeof(w->path)) {
		fail(w);
		return;
	}
	if (w->path_len > 0)
		w->path[w->path_len++] = '/';
	memcpy(w->path + w->path_len, name, len + 1);
	w->path_len += len;
	w->text_len = 0;
}

static void XMLCALL
text_cb(void *arg, const XML_Char *text, int len)
{
	struct walk *w = arg;

	if ((size_t)len >= sizeof(w->text) - w->text_len) {
		fail(w);
		return;
	}
	memcpy(w->text + w->text_len, text, (size_t)len);
	w->text_len += (size_t)len;
}

static void XMLCALL
end_cb(void *arg, const XML_Char *name)
{
	struct walk *w = arg;
	size_t len = strlen(name);

	/* Expat calls this once more after XML_StopParser(). */
	if (w->failed)
		return;
	w->text[w->text_len] = '\0';
	if (w->fn(w->arg, w->path, w->text) != 0) {
		fail(w);
		return;
	}
	w->path_len -= w->path_len > len ? len + 1 : len;
	w->path[w->path_len] = '\0';
	w->text_len = 0;
}

static void XMLCALL
doctype_cb(void *arg, const XML_Char *name, const XML_Char *system_id,
    const XML_Char *public_id, int has_internal_subset)
{
	fail(arg);
}

int
xml_walk(const char *bytes, size_t len,
    int (*fn)(void *arg, const char *path, const char *text), void *arg)
{
	struct walk w = { .fn = fn, .arg = arg };
	bool ok;

	if (len > INT_MAX || (w.parser = XML_ParserCreate(NULL)) == NULL)
		return -1;
	XML_SetUserData(w.parser, &w);
	XML_SetElementHandler(w.parser, start_cb, end_cb);
	XML_SetCharacterDataHandler(w.parser, text_cb);
	XML_SetStartDoctypeDeclHandler(w.parser, doctype_cb);
	ok = XML_Parse(w.parser, bytes, (int)len, 1) == XML_STATUS_OK &&
	    !w.failed;
	XML_ParserFree(w.parser);
	return ok ? 0 : -1;
}
