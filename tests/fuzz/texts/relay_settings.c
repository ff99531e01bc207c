/*
 * A relay's settings file: any text gives settings that can be checked, or a
 * sentence.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "relay/settings/settings.h"
#include "tests/fuzz/texts/texts.h"

static void
check(const struct relay_settings *s)
{
	char err[RELAY_SETTINGS_ERROR_SIZE] = "";

	if (s->n_producer_sockets == 0 || s->machine_name == NULL ||
	    s->machine_id == NULL || s->state_dir == NULL)
		abort();
	if (s->limits.max_producers == 0 || s->limits.max_shm_kb == 0)
		abort();
	if (relay_settings_check(s, err, sizeof(err)) != 0 && err[0] == '\0')
		abort();
}

void
fuzz_relay_settings(const uint8_t *data, size_t size)
{
	char err[RELAY_SETTINGS_ERROR_SIZE] = "", path[64];
	struct relay_settings s;
	static int fd = -1;

	if (fd < 0 && (fd = memfd_create("settings", MFD_CLOEXEC)) < 0)
		abort();
	if (ftruncate(fd, 0) != 0 ||
	    pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (relay_settings_init(&s) != 0)
		abort();
	if (relay_settings_read(&s, path, err, sizeof(err)) == 0)
		check(&s);
	else if (err[0] == '\0' || memchr(err, '\0', sizeof(err)) == NULL)
		abort();
	relay_settings_done(&s);
}
