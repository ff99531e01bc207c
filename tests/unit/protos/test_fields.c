/*
 * The constants that protos/fields.py writes, against the descriptors that
 * protobuf-c makes of the same schemas.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "fields_table.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static bool
find(const char *name, size_t *at)
{
	for (*at = 0; *at < N(constants); (*at)++)
		if (strcmp(constants[*at].name, name) == 0)
			return true;
	return false;
}

/*
 * path is "Outer.Inner", of the message around the field or value.  The
 * constant has the path's end in front; the longest one that there is counts,
 * as a shorter one may be another message's.
 */
static void
check(const char *path, const char *field, int number)
{
	char name[256], *dot;
	size_t at;

	for (;;) {
		snprintf(name, sizeof(name), "%s_%s", path, field);
		while ((dot = strchr(name, '.')) != NULL)
			*dot = '_';
		if (find(name, &at))
			break;
		if ((path = strchr(path, '.')) == NULL)
			fail_msg("%s has no constant", name);
		path++;
	}
	if (constants[at].number != number)
		fail_msg("%s is %d, and %d in the schema", name,
		    constants[at].number, number);
}

static void
check_message(const ProtobufCMessageDescriptor *m)
{
	unsigned i;

	for (i = 0; i < m->n_fields; i++)
		check(m->name + strlen(m->package_name) + 1,
		    m->fields[i].name, (int)m->fields[i].id);
}

/* Returns how many constants it has: none, if it stands beside the messages. */
static unsigned
check_enum(const ProtobufCEnumDescriptor *e)
{
	char path[256], *dot;
	unsigned i;

	snprintf(path, sizeof(path), "%s",
	    e->name + strlen(e->package_name) + 1);
	if ((dot = strrchr(path, '.')) == NULL)
		return 0;
	*dot = '\0';
	for (i = 0; i < e->n_value_names; i++)
		check(path, e->values_by_name[i].name,
		    e->values[e->values_by_name[i].index].value);
	return e->n_value_names;
}

static void
every_constant_has_the_number_of_its_field_or_value(void **state)
{
	size_t i, n = 0;

	for (i = 0; i < N(messages); i++) {
		check_message(messages[i]);
		n += messages[i]->n_fields;
	}
	for (i = 0; i < N(enums); i++)
		n += check_enum(enums[i]);
	assert_int_equal(n, N(constants));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    every_constant_has_the_number_of_its_field_or_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
