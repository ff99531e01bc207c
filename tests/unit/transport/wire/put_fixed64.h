/* A field of 64 fixed bits, which the product only reads. */
#ifndef TESTS_UNIT_TRANSPORT_WIRE_PUT_FIXED64_H
#define TESTS_UNIT_TRANSPORT_WIRE_PUT_FIXED64_H

#include "transport/wire/pb_reader.h"
#include "transport/wire/pb_writer.h"

static inline void
put_fixed64(struct pb_writer *w, uint32_t field, uint64_t v)
{
	pb_put_varint(w, (uint64_t)field << 3 | PB_FIXED64);
	pb_put_raw(w, &v, sizeof(v));
}

#endif /* TESTS_UNIT_TRANSPORT_WIRE_PUT_FIXED64_H */
