#include "client/text/json_text.h"

#include "protos/json_print.h"

void
json_text(FILE *out, const char *text)
{
	json_print_string(out, text);
}

void
json_entry(FILE *out, const char *key, const char *text)
{
	if (text == NULL)
		return;
	fprintf(out, ", \"%s\": ", key);
	json_text(out, text);
}
