/*
 * producer_command: what a producer is told, as GetAsyncCommandResponse
 * (reference wire-format.md, ipc/producer_port.proto).  Pure.
 *
 * Each appends one command; w->failed says that memory was missing.
 */
#ifndef SERVICE_LINK_PRODUCER_COMMAND_H
#define SERVICE_LINK_PRODUCER_COMMAND_H

#include <stddef.h>
#include <stdint.h>

struct pb_writer;

void producer_command_setup_tracing(struct pb_writer *w, size_t page_size);
void producer_command_setup(struct pb_writer *w, uint64_t instance,
    const uint8_t *config, size_t len);
void producer_command_start(struct pb_writer *w, uint64_t instance,
    const uint8_t *config, size_t len);
void producer_command_stop(struct pb_writer *w, uint64_t instance);
void producer_command_flush(struct pb_writer *w, uint64_t request_id,
    const uint64_t *instances, size_t n, uint64_t flags);
void producer_command_clear(struct pb_writer *w, const uint64_t *instances,
    size_t n);

#endif /* SERVICE_LINK_PRODUCER_COMMAND_H */
