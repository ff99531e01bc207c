#include "transport/base/machine_word.h"

#include <string.h>

#include "transport/base/glob.h"

bool
machine_word_means(const char *word, uint32_t id, const char *name)
{
	if (id == 0 && glob_match(word, MACHINE_WORD_HOST))
		return true;
	if (id != 0 && strcmp(word, MACHINE_WORD_HOST) == 0)
		return false;
	return name != NULL && name[0] != '\0' && glob_match(word, name);
}
