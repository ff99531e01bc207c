#include "client/upload/upload_clock.h"

#include <sys/random.h>
#include <time.h>

uint64_t
upload_clock_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

uint64_t
upload_clock_wall_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint32_t
upload_clock_random(void)
{
	uint32_t v;

	return getrandom(&v, sizeof(v), GRND_NONBLOCK) == sizeof(v) ? v : 0;
}
