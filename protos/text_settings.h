/*
 * text_settings: a settings file of a daemon (protobuf text): read, parsed, and
 * its plain fields copied into a struct by a table.
 */
#ifndef PROTOS_TEXT_SETTINGS_H
#define PROTOS_TEXT_SETTINGS_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The file that is read, and where the sentence about it goes. */
struct text_settings {
	const char *name;
	char *err;
	size_t err_size;
};

/* "name: error: what: ..."; returns -1. */
int text_settings_complain(const struct text_settings *t, const char *what,
    const char *fmt, ...) __attribute__((__format__(__printf__, 3, 4)));

/* A field that is a number or bool, and the struct's member for it. */
struct text_setting {
	const char *field;
	size_t to;     /* offset and size of the member */
	size_t size;
	bool is_limit; /* 0 is refused, as it would refuse everything */
	uint64_t most; /* of a limit; 0: the type is the only bound */
};

/* Lines of a table, where member and field have one name. */
#define TEXT_SETTING(type, member)                                            \
	{ #member, offsetof(type, member), sizeof(((type *)0)->member),       \
		false, 0 }
#define TEXT_LIMIT(type, member, most)                                        \
	{ #member, offsetof(type, member), sizeof(((type *)0)->member), true, \
		most }

/*
 * Copies those of the table's n fields that are set in `from` into the struct
 * `to`; other members are untouched.  prefix ("limits.") stands before a
 * field's name in sentences.  -1 with a sentence.
 */
int text_settings_copy(const struct text_settings *t, const char *prefix,
    const struct text_setting *table, size_t n, const ProtobufCMessage *from,
    void *to) __attribute__((__warn_unused_result__));

/* The file's message type; apply() takes it, or returns -1 with a sentence. */
struct text_settings_kind {
	const ProtobufCMessageDescriptor *descriptor;
	int (*apply)(const struct text_settings *t, const ProtobufCMessage *m,
	    void *settings);
};

/*
 * Parses text and applies it to settings.  -1 with a sentence that has file,
 * line and column; settings may have been changed in part.
 */
int text_settings_parse(const struct text_settings *t,
    const struct text_settings_kind *kind, const char *text, size_t len,
    void *settings) __attribute__((__warn_unused_result__));

/* text_settings_parse() of the file t->name. */
int text_settings_read(const struct text_settings *t,
    const struct text_settings_kind *kind, void *settings)
    __attribute__((__warn_unused_result__));

#endif /* PROTOS_TEXT_SETTINGS_H */
