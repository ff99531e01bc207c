/*
 * packet_boundary: where whole packets end in the bytes of a trace.  Pure.
 */
#ifndef TRANSPORT_SINK_PACKET_BOUNDARY_H
#define TRANSPORT_SINK_PACKET_BOUNDARY_H

#include <stddef.h>
#include <stdint.h>

/*
 * data, len bytes, begins with a Trace.packet field.  Returns how many of its
 * first bytes are whole fields: the rest is a packet that was cut (or no
 * packet).
 */
size_t packet_boundary(const uint8_t *data, size_t len);

#endif /* TRANSPORT_SINK_PACKET_BOUNDARY_H */
