/*
 * producer_command: what a producer is told, as GetAsyncCommandResponse
 * (reference wire-format.md, ipc/producer_port.proto): producer_ops for ports
 * that send encoded commands.
 */
#ifndef SERVICE_LINK_PRODUCER_COMMAND_H
#define SERVICE_LINK_PRODUCER_COMMAND_H

#include <stdbool.h>

struct pb_writer;
struct producer_ops;

/* First member of a port, which is the port of producer_new(). */
struct producer_command_port {
	/*
	 * command->failed says that memory was missing.  with_shm: the
	 * producer is to get its shared memory with it.
	 */
	void (*send)(void *port, const struct pb_writer *command,
	    bool with_shm);
	void (*resume)(void *port); /* as producer_ops.resume */
};

extern const struct producer_ops producer_command_ops;

#endif /* SERVICE_LINK_PRODUCER_COMMAND_H */
