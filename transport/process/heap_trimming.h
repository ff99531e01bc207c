/*
 * heap_trimming: bounds the free memory that malloc() keeps in a daemon that
 * runs for months.
 *
 * By default glibc's malloc() makes a heap ("arena") for each thread, up to
 * eight for each processor, and the arena of a thread that ended stays
 * resident.  The first large block that is freed, a compressor's say, raises
 * the threshold up to which freed blocks and the ends of heaps are kept.  And
 * no page is given back that lies between two blocks in use.  A collector that
 * had served sessions and connections held 20 MiB, of which 1.5 were in use.
 *
 * So there are as few arenas as threads that allocate much; large blocks are
 * mapped from the kernel and go back to it; and when much has come and gone,
 * free pages are given back in a calm second, which heap_rest_second()
 * (transport/base/heap_rest.h) tells on a timer of one second.
 */
#ifndef TRANSPORT_PROCESS_HEAP_TRIMMING_H
#define TRANSPORT_PROCESS_HEAP_TRIMMING_H

/*
 * Tunes malloc(); called before any other thread exists.  threads: how many
 * threads, beside this one, will allocate all the time.  Other threads (that
 * write files, compress) share the arenas of these.
 */
void heap_init(unsigned threads);

/*
 * Gives free pages back to the kernel.  Takes 7 ms for 40 MiB, and very little
 * when there are none.
 */
void heap_trim(void);

#endif /* TRANSPORT_PROCESS_HEAP_TRIMMING_H */
