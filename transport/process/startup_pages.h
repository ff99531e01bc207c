/*
 * startup_pages: gives back memory that only the start of a program needed.
 */
#ifndef TRANSPORT_PROCESS_STARTUP_PAGES_H
#define TRANSPORT_PROCESS_STARTUP_PAGES_H

/*
 * To be called once a daemon serves.  Pages of the program and its libraries
 * that the dynamic linker read (symbols, relocations: megabytes, for OpenSSL)
 * are no longer resident; those that are used are paged in again.  The heap's
 * unused end is given back, too.
 */
void startup_pages_drop(void);

#endif /* TRANSPORT_PROCESS_STARTUP_PAGES_H */
