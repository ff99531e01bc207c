/*
 * compiler: the few compiler attributes the project uses, and other matters of
 * compilers alone.
 */
#ifndef TRANSPORT_BASE_COMPILER_H
#define TRANSPORT_BASE_COMPILER_H

#define MUST_CHECK __attribute__((__warn_unused_result__))
#define PRINTF_LIKE(fmt, args) __attribute__((__format__(__printf__, fmt, args)))
#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/*
 * 1 under a sanitizer that has an allocator and threads of its own.  gcc says so
 * in one way, clang in another.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||     \
    __has_feature(memory_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif
#ifndef HAS_SANITIZER
#define HAS_SANITIZER 0
#endif

#endif /* TRANSPORT_BASE_COMPILER_H */
