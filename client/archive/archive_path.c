#include "client/archive/archive_path.h"

#include <stddef.h>
#include <string.h>

static bool
has_suffix(const char *name, const char *suffix)
{
	size_t len = strlen(name), n = strlen(suffix);

	return len > n && strcmp(name + len - n, suffix) == 0;
}

bool
archive_path_is_segment(const char *path)
{
	return path[0] != '.' && path[0] != '/' && strstr(path, "/.") == NULL &&
	    (has_suffix(path, ".pftrace") ||
	    has_suffix(path, ".perfetto-trace"));
}
