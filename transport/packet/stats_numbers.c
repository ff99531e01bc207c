#include "transport/packet/stats_numbers.h"

#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

void
stats_numbers_read(struct stats_numbers *n, const uint8_t *data, size_t len)
{
	struct pb_reader r;
	struct pb_field f;

	memset(n, 0, sizeof(*n));
	PB_FOREACH(&f, &r, data, len) {
		if (f.wire != PB_VARINT || f.number >= STATS_NUMBERS_END)
			continue;
		n->value[f.number] = f.value;
		n->present |= STATS_BIT(f.number);
	}
}

uint64_t
stats_combined(enum stats_how how, uint64_t later, uint64_t earlier)
{
	if (how == STATS_ADD)
		return later + earlier;
	return later >= earlier ? later - earlier : later;
}

void
stats_numbers_combine(struct stats_numbers *later, enum stats_how how,
    const struct stats_numbers *earlier, uint32_t readings)
{
	uint32_t i, bit;

	for (i = 1; i < STATS_NUMBERS_END; i++) {
		bit = STATS_BIT(i);
		if ((earlier->present & bit) == 0)
			continue;
		if ((readings & later->present & bit) != 0)
			continue;
		if ((later->present & bit) == 0 && how == STATS_SUBTRACT)
			continue;
		later->value[i] = stats_combined(how, later->value[i],
		    earlier->value[i]);
		later->present |= bit;
	}
}

bool
stats_numbers_any(const struct stats_numbers *n, uint32_t fields)
{
	uint32_t i;

	for (i = 1; i < STATS_NUMBERS_END; i++)
		if ((fields & STATS_BIT(i)) != 0 && n->value[i] != 0)
			return true;
	return false;
}

void
stats_numbers_put(struct pb_writer *w, const struct stats_numbers *n)
{
	uint32_t i;

	for (i = 1; i < STATS_NUMBERS_END; i++)
		if ((n->present & STATS_BIT(i)) != 0)
			pb_put_uint(w, i, n->value[i]);
}
