/*
 * failing_malloc: malloc(), calloc() and realloc() of the code under test, of
 * which one call can be made to fail.  Linked with --wrap for each.
 */
#ifndef TESTS_UNIT_SERVICE_PROTOVM_FAILING_MALLOC_H
#define TESTS_UNIT_SERVICE_PROTOVM_FAILING_MALLOC_H

/* The n-th call from now on fails, and only that one; 0: none. */
void failing_malloc(unsigned n);
/* Calls since then. */
unsigned failing_malloc_calls(void);

#endif /* TESTS_UNIT_SERVICE_PROTOVM_FAILING_MALLOC_H */
