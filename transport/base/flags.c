#include "transport/base/flags.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "protos/nearest.h"
#include "protos/plain_text.h"
#include "transport/base/log.h"

/* getopt_long()'s number for the first long name; above every letter. */
enum { FIRST_LONG = 256 };

/* The table as getopt_long() wants it. */
struct getopt_table {
	struct option names[FLAGS_MAX + 1];
	char letters[2 * FLAGS_MAX + 3];
};

static int
argument_of(enum flag_kind kind)
{
	switch (kind) {
	case FLAG_TEXT:
	case FLAG_VALUE:
		return required_argument;
	case FLAG_MAYBE:
		return optional_argument;
	case FLAG_BOOL:
	case FLAG_CHOICE:
	case FLAG_NOTE:
	case FLAG_HELP:
	case FLAG_VERSION:
	case FLAG_ALIAS:
		break;
	}
	return no_argument;
}

static void
make_table(struct getopt_table *t, const struct flags *f)
{
	char *p = t->letters;
	struct option *o;
	size_t i;

	if (f->flags_first)
		*p++ = '+';
	*p++ = ':';
	for (i = 0; i < FLAGS_MAX && f->table[i].name != NULL; i++) {
		o = &t->names[i];
		*o = (struct option){ f->table[i].name,
			argument_of(f->table[i].kind), NULL,
			FIRST_LONG + (int)i };
		if (f->table[i].kind == FLAG_ALIAS) {
			o->has_arg = o[-1].has_arg;
			o->val = o[-1].val;
		}
		if (f->table[i].letter == 0)
			continue;
		*p++ = f->table[i].letter;
		if (o->has_arg == required_argument)
			*p++ = ':';
	}
	t->names[i] = (struct option){ NULL, 0, NULL, 0 };
	*p = '\0';
}

/* The flag that getopt_long() has found, by any of its names. */
static const struct flag *
found(const struct flags *f, int got)
{
	const struct flag *flag = f->table;

	if (got >= FIRST_LONG)
		return flag + (got - FIRST_LONG);
	while (flag->letter != got)
		flag++;
	while (flag->kind == FLAG_ALIAS)
		flag--;
	return flag;
}

/*
 * The flag that getopt_long() does not know.  Of letters in a row it knows which
 * one; a program without letters is told the whole word.
 */
static const char *
unknown_word(const struct getopt_table *t, const struct flags_words *w,
    char letter[3])
{
	const char *word = w->argv[optind - 1];

	if (optopt == 0)
		return word;
	letter[0] = '-';
	letter[1] = (char)optopt;
	letter[2] = '\0';
	if (t->letters[strspn(t->letters, "+:")] != '\0' ||
	    strcmp(word, letter) == 0)
		return letter;
	return w->argv[optind];
}

static void
say_unknown(const struct flags *f, const char *word, char *err, size_t err_size)
{
	/* "--outt=x": what stands before the = */
	size_t len = strcspn(word, "=");
	const struct flag *flag;
	struct nearest near;
	char shown[64];

	log_escape(shown, sizeof(shown), word, len);
	while (len > 0 && *word == '-') {
		word++;
		len--;
	}
	nearest_init(&near, word, len);
	for (flag = f->table; flag->name != NULL; flag++)
		nearest_offer(&near, flag->name);
	if (nearest_best(&near) != NULL)
		snprintf(err, err_size,
		    "there is no flag %s; did you mean --%s?", shown,
		    nearest_best(&near));
	else
		snprintf(err, err_size, "there is no flag %s; %s", shown,
		    f->help_is_at);
}

/* The sentence about what getopt_long() refuses. */
static void
say_wrong(const struct flags *f, const struct getopt_table *t,
    const struct flags_words *w, int got, char *err, size_t err_size)
{
	char letter[3];
	const char *word;

	if (got == ':') {
		snprintf(err, err_size, "%s%s", w->argv[optind - 1],
		    f->no_value != NULL ? f->no_value : " wants a value");
		return;
	}
	if (optopt >= FIRST_LONG) {
		word = w->argv[optind - 1];
		snprintf(err, err_size, "%.*s takes no value",
		    (int)strcspn(word, "="), word);
		return;
	}
	word = unknown_word(t, w, letter);
	if (f->no_such_flag != NULL)
		snprintf(err, err_size, "%s%s", word, f->no_such_flag);
	else
		say_unknown(f, word, err, err_size);
}

static enum flags_verdict
take(const struct flag *flag, void *options, const char *value, char *err,
    size_t err_size)
{
	char *at = (char *)options + flag->at;

	switch (flag->kind) {
	case FLAG_BOOL:
		*(bool *)at = true;
		break;
	case FLAG_CHOICE:
		*(int *)at = flag->id;
		break;
	case FLAG_TEXT:
		*(const char **)at = value;
		break;
	case FLAG_NOTE:
	case FLAG_VALUE:
	case FLAG_MAYBE:
		return (enum flags_verdict)flag->take(options, flag, value,
		    err, err_size);
	case FLAG_HELP:
		return FLAGS_HELP;
	case FLAG_VERSION:
		return FLAGS_VERSION;
	case FLAG_ALIAS:
		break; /* found() gives the line before */
	}
	return FLAGS_RUN;
}

enum flags_verdict
flags_parse(const struct flags *f, void *options, struct flags_words *w,
    char *err, size_t err_size)
{
	enum flags_verdict verdict = FLAGS_RUN;
	const struct flag *flag;
	struct getopt_table t;
	int got;

	err[0] = '\0';
	w->given = 0;
	make_table(&t, f);
	opterr = 0;
	optind = 0; /* anew: glibc keeps state between calls */
	while (verdict == FLAGS_RUN && (got = getopt_long(w->argc, w->argv,
	    t.letters, t.names, NULL)) != -1) {
		if (got == ':' || got == '?') {
			say_wrong(f, &t, w, got, err, err_size);
			return FLAGS_BAD;
		}
		flag = found(f, got);
		w->given |= UINT64_C(1) << (flag - f->table);
		verdict = take(flag, options, optarg, err, err_size);
	}
	w->argc -= optind;
	w->argv += optind;
	return verdict;
}

int
flags_answer(const struct flags *f, enum flags_verdict verdict, const char *err)
{
	switch (verdict) {
	case FLAGS_BAD:
		return flags_refuse(f, err);
	case FLAGS_RUN:
		return -1;
	case FLAGS_HELP:
		fputs(f->help, stdout);
		return 0;
	case FLAGS_VERSION:
		puts(f->version);
		return 0;
	case FLAGS_NOTHING:
		if (err[0] != '\0')
			flags_refuse(f, err);
		return 0;
	}
	return f->bad_status;
}

int
flags_refuse(const struct flags *f, const char *text)
{
	plain_printf(stderr, "%s: %s\n", f->speaker, text);
	return f->bad_status;
}
