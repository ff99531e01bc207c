/*
 * startup_pages: gives back memory that only the start of a program needed.
 */
#ifndef TRANSPORT_PROCESS_STARTUP_PAGES_H
#define TRANSPORT_PROCESS_STARTUP_PAGES_H

/*
 * To be called once a daemon serves.  Pages of the program and its libraries
 * that the dynamic linker went through (symbols, relocations: megabytes, for
 * OpenSSL) are no longer counted as resident; what is used comes back by
 * itself.  So does the heap's unused end.
 */
void startup_pages_drop(void);

#endif /* TRANSPORT_PROCESS_STARTUP_PAGES_H */
