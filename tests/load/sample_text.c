#include "tests/load/sample_text.h"

#include <string.h>

static const char *const words[] = {
	"Scheduler::Run", "toplevel.flow", "RenderFrame", "DrawQuads",
	"mojom.Widget", "BeginMainFrame", "cc,benchmark", "LayerTreeHost",
	"browser_thread", "NetworkService", "url_loader", "v8.compile",
	"GarbageCollect", "TaskQueueManager", "duration_us", "Compositor",
};
#define N_WORDS (sizeof(words) / sizeof(words[0]))

static uint64_t
next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static size_t
put(char *out, size_t room, const char *data, size_t len)
{
	if (len > room)
		len = room;
	memcpy(out, data, len);
	return len;
}

void
sample_text(char *out, size_t len, uint64_t seed)
{
	uint64_t state = seed * 0x9e3779b97f4a7c15u | 1, r;
	const char *word;
	char number[2];
	size_t at = 0;

	while (at < len) {
		r = next(&state);
		word = words[r % N_WORDS];
		at += put(out + at, len - at, word, strlen(word));
		number[0] = (char)(r >> 32);
		number[1] = (char)(r >> 40);
		at += put(out + at, len - at, number, sizeof(number));
	}
}
