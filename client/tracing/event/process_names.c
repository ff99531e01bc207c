#include "client/tracing/event/process_names.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "client/tracing/packet/packet.h"
#include "protos/fields.h"

#define COMMAND_LINE_MAX 4096

static __thread char own_name[PROCESS_NAME_MAX];

void
thread_set_name(const char *name)
{
	snprintf(own_name, sizeof(own_name), "%s", name);
}

void
thread_name(char out[PROCESS_NAME_MAX])
{
	char comm[17] = "";

	if (own_name[0] == '\0')
		(void)prctl(PR_GET_NAME, comm);
	snprintf(out, PROCESS_NAME_MAX, "%s",
	    own_name[0] != '\0' ? own_name : comm);
}

/* Bytes read; ends with a 0. */
static size_t
read_command_line(char out[COMMAND_LINE_MAX])
{
	ssize_t n = 0;
	int fd;

	if ((fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC)) >= 0) {
		n = read(fd, out, COMMAND_LINE_MAX - 1);
		close(fd);
	}
	if (n < 0)
		n = 0;
	out[n] = '\0';
	return (size_t)n;
}

void
process_name(char out[PROCESS_NAME_MAX])
{
	char line[COMMAND_LINE_MAX];
	const char *slash;

	(void)read_command_line(line);
	slash = strrchr(line, '/');
	slash = slash != NULL ? slash + 1 : line;
	snprintf(out, PROCESS_NAME_MAX, "%.*s", PROCESS_NAME_MAX - 1, slash);
}

void
process_put_command_line(struct tributary_packet *p)
{
	char line[COMMAND_LINE_MAX];
	size_t at, len = read_command_line(line);

	for (at = 0; at < len; at += strlen(line + at) + 1)
		tributary_put_string(p, ProcessDescriptor_cmdline, line + at);
}
