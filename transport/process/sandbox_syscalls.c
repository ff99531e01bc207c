/*
 * The filter of system calls (libseccomp).
 */
#include <errno.h>
#include <grp.h>
#include <linux/prctl.h>
#include <netdb.h>
#include <pwd.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "transport/base/compiler.h"
#include "transport/base/failure.h"
#include "transport/base/log.h"
#include "transport/process/sandbox.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* The kernel's layout of clone()'s arguments. */
#ifdef __s390__
#define CLONE_FLAGS_ARG 1
#else
#define CLONE_FLAGS_ARG 0
#endif

/*
 * System calls that a collector makes, whatever the arguments.  Names, as not
 * every architecture and not every libseccomp has all of them.
 */
static const char *const allowed[] = {
	/* memory */
	"brk", "madvise", "mremap", "munmap", "memfd_create",
	/* threads and signals */
	"exit", "exit_group", "futex", "futex_time64", "get_robust_list",
	"getpid", "gettid", "membarrier", "restart_syscall",
	"rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigreturn",
	"rt_sigtimedwait", "rseq", "sched_getaffinity", "sched_yield",
	"set_robust_list", "sigaltstack", "sigreturn",
	/* time */
	"clock_getres", "clock_gettime", "clock_gettime64", "clock_nanosleep",
	"gettimeofday", "nanosleep", "time", "timerfd_create",
	"timerfd_gettime", "timerfd_settime",
	/* waiting */
	"epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2",
	"epoll_wait", "eventfd2", "pipe2", "poll", "ppoll", "pselect6",
	"select",
	/* descriptors */
	"close", "close_range", "dup", "dup2", "dup3", "fcntl", "fcntl64",
	"read", "readv", "write", "writev", "pread64", "preadv", "pwrite64",
	"pwritev", "lseek", "_llseek", "sendfile", "splice",
	/* files: traces, certificates, /proc/PID/comm, /etc/localtime */
	"access", "faccessat", "faccessat2", "fallocate", "fchmod",
	"fdatasync", "flock", "fstat",
	"fstat64", "fstatat64", "fstatfs", "fstatfs64", "fsync", "ftruncate",
	"ftruncate64", "getcwd", "getdents64", "lstat", "newfstatat", "open",
	"openat", "openat2", "readlink", "readlinkat", "stat", "statx",
	"sync_file_range", "sync_file_range2", "unlink", "unlinkat",
	/* folders of segments, and their names */
	"linkat", "mkdirat", "renameat", "renameat2",
	"syncfs",
	/* sockets that are open, or come with accept() */
	"accept", "accept4", "getpeername", "getsockname", "getsockopt",
	"recv", "recvfrom", "recvmmsg", "recvmsg", "send", "sendmmsg",
	"sendmsg", "sendto", "setsockopt", "shutdown",
	/* the service manager, name services */
	"connect",
	/* who and where we are */
	"getegid", "geteuid", "getgid", "getgroups", "getppid", "getresgid",
	"getresuid", "getrlimit", "getrusage", "getuid", "ugetrlimit",
	"sysinfo", "uname", "getcpu", "getrandom",
	/* how we are scheduled, for priority_boost */
	"getpriority", "sched_getparam", "sched_getscheduler",
};

/* System calls that an attacker in the process would try next. */
static const char *const deadly[] = {
	/* other programs, other processes */
	"execve", "execveat", "ptrace", "process_vm_readv",
	"process_vm_writev", "pidfd_getfd", "process_madvise", "kcmp",
	/* the kernel */
	"bpf", "perf_event_open", "userfaultfd", "io_uring_setup",
	"io_uring_enter", "io_uring_register", "init_module",
	"finit_module", "delete_module", "kexec_load", "kexec_file_load",
	"iopl", "ioperm", "modify_ldt", "vm86", "vm86old", "syslog",
	/* file systems and namespaces */
	"mount", "umount", "umount2", "mount_setattr", "move_mount",
	"open_tree", "fsopen", "fsmount", "fsconfig", "fspick", "pivot_root",
	"chroot", "setns", "unshare", "open_by_handle_at", "mknod", "mknodat",
	"swapon", "swapoff", "quotactl", "acct",
	/* privileges and keys */
	"setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid",
	"setfsuid", "setfsgid", "setgroups", "capset", "personality",
	"add_key", "request_key", "keyctl",
	/* the machine */
	"reboot", "sethostname", "setdomainname", "settimeofday",
	"clock_settime", "clock_adjtime", "adjtimex",
};

/* 0 also for a name that this machine has no call for. */
static int
add(scmp_filter_ctx ctx, uint32_t action, const char *name, unsigned n,
    const struct scmp_arg_cmp *args)
{
	int number = seccomp_syscall_resolve_name(name);
	int rc;

	if (number == __NR_SCMP_ERROR)
		return 0;
	rc = seccomp_rule_add_array(ctx, action, number, n, args);
	return rc == -EDOM ? 0 : rc;
}

static int
add_all(scmp_filter_ctx ctx, uint32_t action, const char *const *names,
    size_t n)
{
	size_t i;
	int rc;

	for (i = 0; i < n; i++)
		if ((rc = add(ctx, action, names[i], 0, NULL)) != 0)
			return rc;
	return 0;
}

static int
allow_where(scmp_filter_ctx ctx, const char *name, struct scmp_arg_cmp arg)
{
	return add(ctx, SCMP_ACT_ALLOW, name, 1, &arg);
}

/* Memory, but none that can be written and then run. */
static int
add_mappings(scmp_filter_ctx ctx)
{
	struct scmp_arg_cmp not_executable =
	    SCMP_CMP(2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
	static const char *const names[] = { "mmap", "mmap2", "mprotect" };
	size_t i;
	int rc;

	for (i = 0; i < COUNT_OF(names); i++)
		if ((rc = allow_where(ctx, names[i], not_executable)) != 0)
			return rc;
	return 0;
}

/* Threads, but no processes. */
static int
add_threads(scmp_filter_ctx ctx)
{
	int rc;

	/* clone3 has its flags in memory: the C library falls back to clone. */
	if ((rc = add(ctx, SCMP_ACT_ERRNO(ENOSYS), "clone3", 0, NULL)) != 0)
		return rc;
	if ((rc = allow_where(ctx, "clone", SCMP_CMP(CLONE_FLAGS_ARG,
		SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD))) != 0)
		return rc;
	/* abort() */
	return allow_where(ctx, "tgkill",
	    SCMP_CMP(0, SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0));
}

/* Rows for the calling thread alone. */
static int
add_priorities(scmp_filter_ctx ctx)
{
	const struct scmp_arg_cmp this_thread[] = {
		SCMP_CMP(0, SCMP_CMP_EQ, PRIO_PROCESS, 0),
		SCMP_CMP(1, SCMP_CMP_EQ, 0, 0),
	};
	int rc;

	if ((rc = allow_where(ctx, "sched_setscheduler",
		SCMP_CMP(0, SCMP_CMP_EQ, 0, 0))) != 0)
		return rc;
	return add(ctx, SCMP_ACT_ALLOW, "setpriority", COUNT_OF(this_thread),
	    this_thread);
}

static int
add_others(scmp_filter_ctx ctx)
{
	const struct {
		const char *name;
		struct scmp_arg_cmp arg;
	} rules[] = {
		{ "socket", SCMP_CMP(0, SCMP_CMP_EQ, AF_UNIX, 0) },
		{ "socketpair", SCMP_CMP(0, SCMP_CMP_EQ, AF_UNIX, 0) },
		{ "prlimit64", SCMP_CMP(0, SCMP_CMP_EQ, 0, 0) },
		{ "prctl", SCMP_CMP(0, SCMP_CMP_EQ, PR_SET_NAME, 0) },
		{ "prctl", SCMP_CMP(0, SCMP_CMP_EQ, PR_SET_VMA, 0) },
		{ "ioctl", SCMP_CMP(1, SCMP_CMP_EQ, FIONBIO, 0) },
		{ "ioctl", SCMP_CMP(1, SCMP_CMP_EQ, FIONREAD, 0) },
		{ "ioctl", SCMP_CMP(1, SCMP_CMP_EQ, TCGETS, 0) },
	};
	size_t i;
	int rc;

	for (i = 0; i < COUNT_OF(rules); i++)
		if ((rc = allow_where(ctx, rules[i].name, rules[i].arg)) != 0)
			return rc;
	return 0;
}

/* AF_NETLINK: the C library asks which kinds of addresses there are. */
static int
add_internet(scmp_filter_ctx ctx)
{
	static const int families[] = { AF_INET, AF_INET6, AF_NETLINK,
		AF_VSOCK };
	size_t i;
	int rc;

	for (i = 0; i < COUNT_OF(families); i++)
		if ((rc = allow_where(ctx, "socket", SCMP_CMP(0, SCMP_CMP_EQ,
			(scmp_datum_t)families[i], 0))) != 0)
			return rc;
	return add(ctx, SCMP_ACT_ALLOW, "bind", 0, NULL);
}

static int
add_database(scmp_filter_ctx ctx)
{
	static const char *const names[] = { "fchown", "fchown32", "flock",
		"inotify_add_watch", "inotify_init1", "link", "linkat",
		"umask" };

	return add_all(ctx, SCMP_ACT_ALLOW, names, COUNT_OF(names));
}

static int
make_filter(scmp_filter_ctx ctx, enum sandbox_also also)
{
	int rc;

	/* A tree instead of a list: it is asked at every call. */
	(void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	/* Synchronised to all threads, should there be several already. */
	if ((rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1)) != 0 ||
	    (rc = add_all(ctx, SCMP_ACT_KILL_PROCESS, deadly,
		COUNT_OF(deadly))) != 0 ||
	    (rc = add_all(ctx, SCMP_ACT_ALLOW, allowed,
		COUNT_OF(allowed))) != 0 ||
	    (rc = add_mappings(ctx)) != 0 || (rc = add_threads(ctx)) != 0 ||
	    (rc = add_priorities(ctx)) != 0 ||
	    (rc = add_others(ctx)) != 0)
		return rc;
	if (also != SANDBOX_NOTHING_ELSE && (rc = add_internet(ctx)) != 0)
		return rc;
	if (also == SANDBOX_INTERNET_AND_DATABASE &&
	    (rc = add_database(ctx)) != 0)
		return rc;
	return seccomp_load(ctx);
}

/*
 * Rules may name groups: the modules of the name service have to be loaded
 * while memory may still become executable.
 */
static void
load_name_services(void)
{
	const struct passwd *pw = getpwuid(geteuid());
	gid_t groups[1];
	int n = 1;

	(void)getgrgid(getegid());
	if (pw != NULL)
		(void)getgrouplist(pw->pw_name, pw->pw_gid, groups, &n);
}

void
sandbox_load_resolver(const char *host)
{
	struct addrinfo *found = NULL;

	if (getaddrinfo(host, NULL, NULL, &found) == 0)
		freeaddrinfo(found);
}

int
sandbox_system_calls(enum sandbox_also also, bool *filtered, char *err,
    size_t err_size)
{
	scmp_filter_ctx ctx;
	int rc;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return FAILURE(err, err_size, "cannot give up new privileges "
		    "(setting seccomp): %s", strerror(errno));
	*filtered = !HAS_SANITIZER;
	if (HAS_SANITIZER) {
		log_warn("this build has a sanitizer, which needs system calls "
		    "that seccomp would refuse: no filter");
		return 0;
	}
	load_name_services();
	if ((ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM))) == NULL)
		return FAILURE(err, err_size, "no memory");
	rc = make_filter(ctx, also);
	seccomp_release(ctx);
	if (rc == 0)
		return 0;
	return FAILURE(err, err_size, "cannot refuse system calls (setting "
	    "seccomp): %s%s", strerror(-rc), rc == -EINVAL || rc == -ENOSYS ?
	    " (does this kernel have seccomp filters?)" : "");
}
