#include "transport/process/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "transport/base/failure.h"
#include "transport/base/log.h"

/* A user's name in messages, escaped. */
#define SHOWN_MAX 100

static const struct passwd *
find_user(const char *user)
{
	const struct passwd *pw = getpwnam(user);
	unsigned long uid;
	char *end;

	if (pw != NULL || *user < '0' || *user > '9')
		return pw;
	errno = 0;
	uid = strtoul(user, &end, 10);
	if (errno != 0 || *end != '\0' || uid >= (uid_t)-1)
		return NULL;
	return getpwuid((uid_t)uid);
}

static bool
is_user(uid_t uid)
{
	uid_t real, effective, saved;

	return getresuid(&real, &effective, &saved) == 0 && real == uid &&
	    effective == uid && saved == uid;
}

static bool
is_group(gid_t gid)
{
	gid_t real, effective, saved;

	return getresgid(&real, &effective, &saved) == 0 && real == gid &&
	    effective == gid && saved == gid;
}

/* 0: not one capability is permitted. */
static int
has_capabilities(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	memset(data, 0, sizeof(data));
	if (syscall(SYS_capget, &header, data) != 0)
		return -1;
	return data[0].permitted != 0 || data[1].permitted != 0;
}

/*
 * Checks what the kernel says after the change, and that the way back is shut:
 * a change that failed in silence would leave root in a process that thinks it
 * has none.
 */
static bool
is_for_good(uid_t uid, gid_t gid)
{
	return is_user(uid) && is_group(gid) && has_capabilities() == 0 &&
	    setuid(0) != 0 && seteuid(0) != 0 &&
	    (gid == 0 || (setgid(0) != 0 && setegid(0) != 0));
}

static int
change_user(const char *name, uid_t uid, gid_t gid, const char *shown,
    char *err, size_t err_size)
{
	const char *step;

	if (initgroups(name, gid) != 0)
		step = "initgroups";
	else if (setresgid(gid, gid, gid) != 0)
		step = "setresgid";
	else if (setresuid(uid, uid, uid) != 0)
		step = "setresuid";
	else
		step = NULL;
	if (step != NULL)
		return FAILURE(err, err_size, "cannot become the user \"%s\" "
		    "(setting user): %s: %s", shown, step, strerror(errno));
	if (!is_for_good(uid, gid))
		return FAILURE(err, err_size, "became the user \"%s\" (setting "
		    "user), but kept a way back to root", shown);
	return 0;
}

int
sandbox_become_user(const char *user, char *err, size_t err_size)
{
	const struct passwd *pw = find_user(user);
	char shown[SHOWN_MAX];

	log_escape(shown, sizeof(shown), user, strlen(user));
	if (pw == NULL)
		return FAILURE(err, err_size, "there is no user \"%s\", which "
		    "the setting user (--user) names", shown);
	if (pw->pw_uid == 0)
		return FAILURE(err, err_size, "the setting user (--user) names "
		    "\"%s\", which is root: leave it out to stay root", shown);
	if (is_user(pw->pw_uid))
		return 0;
	if (geteuid() != 0)
		return FAILURE(err, err_size, "only root can become the user "
		    "\"%s\" (setting user, --user), and this is uid %u: start "
		    "it as root, or as that user", shown, (unsigned)geteuid());
	return change_user(pw->pw_name, pw->pw_uid, pw->pw_gid, shown, err,
	    err_size);
}

/* "uid 7 (daemon)"; the name is left out where there is none. */
static void
name_user(char *out, size_t out_size, uid_t uid)
{
	const struct passwd *pw = getpwuid(uid);
	char shown[SHOWN_MAX];

	if (pw == NULL) {
		snprintf(out, out_size, "uid %u", (unsigned)uid);
		return;
	}
	log_escape(shown, sizeof(shown), pw->pw_name, strlen(pw->pw_name));
	snprintf(out, out_size, "the user \"%s\"", shown);
}

int
sandbox_check_file(const char *what, const char *path, char *err,
    size_t err_size)
{
	char user[SHOWN_MAX + 16];
	struct stat st;
	int error;

	if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0)
		return 0;
	error = errno;
	name_user(user, sizeof(user), geteuid());
	if (error == EACCES && stat(path, &st) == 0)
		snprintf(err, err_size, "%s %s cannot be read by %s, so that a "
		    "reload would fail (it belongs to %u:%u, mode %04o): give "
		    "it to a group of that user (chgrp) and let the group read "
		    "it (chmod 0640)", what, path, user, (unsigned)st.st_uid,
		    (unsigned)st.st_gid, (unsigned)st.st_mode & 07777u);
	else if (error == EACCES)
		snprintf(err, err_size, "%s %s cannot be read by %s, so that a "
		    "reload would fail: that user may not enter its directory "
		    "(chgrp, chmod 0750)", what, path, user);
	else
		snprintf(err, err_size, "%s %s cannot be read by %s: %s", what,
		    path, user, strerror(error));
	return -1;
}

int
sandbox_check_directory(const char *what, const char *path, char *err,
    size_t err_size)
{
	char user[SHOWN_MAX + 16];
	int error;

	if (faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0)
		return 0;
	error = errno;
	name_user(user, sizeof(user), geteuid());
	return FAILURE(err, err_size, "%s %s is not one where %s can create "
	    "files: %s (chown or chgrp it)", what, path, user, strerror(error));
}

int
sandbox_memory(char *err, size_t err_size)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
		return 0;
	return FAILURE(err, err_size, "cannot shut this process' memory: %s",
	    strerror(errno));
}
