/*
 * What an ssh says, and the far side through it, becomes a sentence: whatever
 * it says, the sentence is one line that a terminal may be shown.  The first two
 * bytes choose the address and the status.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/shown.h"
#include "tests/fuzz/texts/texts.h"
#include "transport/ssh/ssh.h"

void
fuzz_ssh(const uint8_t *data, size_t size)
{
	static const char *const addresses[] = {
		"ssh://host", "ssh://me@host:2222/run/x.sock",
		"ssh://[::1]/localhost:1",
	};
	static const int statuses[] = { -1, 0, 1, 127, 255, 137 };
	struct addr a;
	char err[256], text[1024];
	char *said;

	if (size < 2 ||
	    addr_parse(&a, addresses[data[0] % 3], err, sizeof(err)) != 0)
		return;
	if ((said = malloc(size - 1)) == NULL)
		return;
	memcpy(said, data + 2, size - 2);
	said[size - 2] = '\0';
	ssh_error_text(&a, said, statuses[data[1] % 6], text, sizeof(text));
	if (text[0] == '\0' || !is_shown(text))
		abort();
	free(said);
}
