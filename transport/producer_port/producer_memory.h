/* producer_memory: the memory in which a producer's chunks come. */
#ifndef TRANSPORT_PRODUCER_PORT_PRODUCER_MEMORY_H
#define TRANSPORT_PRODUCER_PORT_PRODUCER_MEMORY_H

/* Maker of the memory. */
enum producer_memory {
	MEMORY_OURS,     /* made and handed over with SetupTracing */
	MEMORY_PROVIDED, /* handed over by the producer */
	MEMORY_EMULATED, /* none: chunks come as data */
};

#endif /* TRANSPORT_PRODUCER_PORT_PRODUCER_MEMORY_H */
