/*
 * compiler: the few compiler attributes the project uses.
 */
#ifndef TRANSPORT_COMPILER_H
#define TRANSPORT_COMPILER_H

#define MUST_CHECK __attribute__((__warn_unused_result__))
#define PRINTF_LIKE(fmt, args) __attribute__((__format__(__printf__, fmt, args)))
#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#endif /* TRANSPORT_COMPILER_H */
