#include "transport/base/heap_rest.h"

#define STIRRED      64u
#define CAME_MANY    8u
#define SECONDS_REST 5u /* between two times */

void
heap_rest_freed(struct heap_rest *r, uint32_t n)
{
	if (n > UINT32_MAX - r->stirred)
		n = UINT32_MAX - r->stirred;
	r->stirred += n;
}

void
heap_rest_came(struct heap_rest *r)
{
	heap_rest_freed(r, 1);
	r->came++;
}

bool
heap_rest_second(struct heap_rest *r)
{
	bool calm = r->came <= CAME_MANY;

	r->came = 0;
	if (r->seconds < SECONDS_REST)
		r->seconds++;
	if (!calm || r->stirred < STIRRED || r->seconds < SECONDS_REST)
		return false;
	r->stirred = r->seconds = 0;
	return true;
}
