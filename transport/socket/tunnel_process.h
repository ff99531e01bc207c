/*
 * tunnel_process: tells processes that forward the bytes of other programs.
 */
#ifndef TRANSPORT_SOCKET_TUNNEL_PROCESS_H
#define TRANSPORT_SOCKET_TUNNEL_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Whether the process forwards the bytes of another program, judged by its
 * name: a process that fakes the name gains only a connection without shared
 * memory, and labels of its choice.
 */
bool is_tunnel_process(pid_t pid);

#endif /* TRANSPORT_SOCKET_TUNNEL_PROCESS_H */
