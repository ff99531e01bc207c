#include "client/library/producer_lookup.h"

#include "protos/service_state.pb-c.h"

const struct Perfetto__Protos__TracingServiceState__Producer *
producer_lookup(const struct Perfetto__Protos__TracingServiceState *s,
    int32_t id, size_t *at)
{
	size_t i, k = *at;

	for (i = 0; i < s->n_producers; i++, k++) {
		if (k >= s->n_producers)
			k = 0;
		if (s->producers[k]->id == id) {
			*at = k;
			return s->producers[k];
		}
	}
	return NULL;
}
