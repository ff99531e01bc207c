/*
 * producer_command: encodes commands to a producer as GetAsyncCommandResponse
 * (reference wire-format.md, ipc/producer_port.proto): producer_ops for ports
 * that send encoded commands.
 */
#ifndef SERVICE_LINK_PRODUCER_COMMAND_H
#define SERVICE_LINK_PRODUCER_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

struct pb_writer;
struct producer_ops;

/* First member of the struct that is passed as port to producer_new(). */
struct producer_command_port {
	/*
	 * Sends a command, borrowed for the call.  command->failed says that
	 * memory was missing.  with_shm: a descriptor of shared memory that
	 * the collector made is to go with it.
	 */
	void (*send)(void *port, const struct pb_writer *command,
	    bool with_shm);
	void (*resume)(void *port); /* as producer_ops.resume */
	/* Tells what a data source is part of, before its set-up.  May be NULL. */
	void (*origin)(void *port, uint64_t instance);
};

extern const struct producer_ops producer_command_ops;

#endif /* SERVICE_LINK_PRODUCER_COMMAND_H */
