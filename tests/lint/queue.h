/*
 * <sys/queue.h> for scan-build (./lint), which includes this first: whoever asks
 * for the first element of a list gets one that the analyzer knows nothing of.
 *
 * The analyzer does not see that an element's tqe_prev is its list's head.  Whoever
 * takes the first one out and frees it would therefore find it there again, in
 * each loop that empties a list: twenty findings, all of them false.  What is no
 * longer found is a first element that was freed and is still in its list.
 */
#ifndef TRIBUTARY_TESTS_LINT_QUEUE_H
#define TRIBUTARY_TESTS_LINT_QUEUE_H

#include <sys/queue.h>

/* Defined nowhere; what is built that way is not run. */
__attribute__((weak)) void *analyzer_anything(const void *list);

#undef TAILQ_FIRST
#define TAILQ_FIRST(head) \
	((__typeof__((head)->tqh_first))analyzer_anything(head))
#undef LIST_FIRST
#define LIST_FIRST(head) \
	((__typeof__((head)->lh_first))analyzer_anything(head))

#endif
