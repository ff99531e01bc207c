#include "service/limits/free_memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEY "MemAvailable:"

int
free_memory_parse(const char *text, uint64_t *kb)
{
	const char *at;
	char *end;
	unsigned long long v;

	for (at = text; strncmp(at, KEY, strlen(KEY)) != 0; at++)
		if ((at = strchr(at, '\n')) == NULL)
			return -1;
	at += strlen(KEY);
	at += strspn(at, " \t");
	if (*at < '0' || *at > '9')
		return -1;
	v = strtoull(at, &end, 10);
	if (strncmp(end, " kB", 3) != 0)
		return -1;
	*kb = v;
	return 0;
}

int
free_memory_kb(uint64_t *kb)
{
	char text[1024]; /* MemAvailable stands in the third line */
	int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	return free_memory_parse(text, kb);
}
