/*
 * heap_trimming: what malloc() keeps in a daemon that lives for months.
 *
 * Left alone, glibc's makes a heap ("arena") for each thread, up to eight for
 * each processor, and what a thread that ended left of its own stays resident.
 * The first large block that is freed, a compressor's say, makes it keep all
 * such blocks, and as much of each heap's end.  And it gives no page back that
 * lies between two blocks in use.  A collector that sessions and connections
 * passed through held 20 MiB for them, of which 1.5 were in use.
 *
 * So there are as few arenas as threads that allocate much; large blocks come
 * from the kernel and go back to it; and when much has come and gone, free
 * pages go back in a calm second, which the owner of a timer of one second
 * asks for: heap_rest_second() (transport/base/heap_rest.h).
 */
#ifndef TRANSPORT_PROCESS_HEAP_TRIMMING_H
#define TRANSPORT_PROCESS_HEAP_TRIMMING_H

/*
 * Before any other thread: how malloc() is to behave.  threads: how many there
 * will be, beside this one, that allocate all the time.  Others (that write
 * files, compress) share the arenas of these, and hardly notice.
 */
void heap_init(unsigned threads);

/*
 * Gives free pages back to the kernel.  Takes 7 ms when that are 40 MiB, and
 * very little when there are none.
 */
void heap_trim(void);

#endif /* TRANSPORT_PROCESS_HEAP_TRIMMING_H */
