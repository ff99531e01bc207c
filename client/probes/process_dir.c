#include "client/probes/process_dir.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/probes/scan.h"

static const char *const file_names[PROCESS_FILES] = {
	[PROCESS_STATUS] = "status",
	[PROCESS_OOM] = "oom_score_adj",
	[PROCESS_STAT] = "stat",
};

int
process_dir_init(struct process_dir *d, struct probe_env *env)
{
	d->env = env;
	text_init(&d->text);
	d->proc = opendir(env->proc);
	return d->proc != NULL ? 0 : -1;
}

void
process_dir_done(struct process_dir *d)
{
	if (d->proc != NULL)
		closedir(d->proc);
	text_done(&d->text);
}

int
process_dir_read(struct process_dir *d, int32_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%d/%s", (int)pid, name);
	return text_read_at(&d->text, dirfd(d->proc), path);
}

int
process_dir_read_kept(struct process_dir *d, struct process *p,
    enum process_file which)
{
	char path[64];

	if (p->fds[which] >= 0)
		return text_read_fd(&d->text, p->fds[which]);
	if (d->env->fds_left <= 0)
		return process_dir_read(d, p->pid, file_names[which]);
	snprintf(path, sizeof(path), "%d/%s", (int)p->pid, file_names[which]);
	p->fds[which] = openat(dirfd(d->proc), path, O_RDONLY | O_CLOEXEC);
	if (p->fds[which] < 0)
		return -1;
	d->env->fds_left--;
	return text_read_fd(&d->text, p->fds[which]);
}

void
process_dir_drop(struct process_dir *d, struct process *p,
    enum process_file which)
{
	if (p->fds[which] < 0)
		return;
	close(p->fds[which]);
	p->fds[which] = -1;
	d->env->fds_left++;
}

int32_t
process_dir_next(DIR *folder)
{
	struct dirent *e;
	struct scan s;
	int32_t n;

	while ((e = readdir(folder)) != NULL) {
		s = scan_text(e->d_name, strlen(e->d_name));
		if (scan_i32(&s, &n) && n > 0 && s.p == s.end)
			return n;
	}
	return 0;
}

DIR *
process_dir_open(struct process_dir *d, int32_t pid, const char *name)
{
	char path[64];
	DIR *folder;
	int fd;

	snprintf(path, sizeof(path), "%d/%s", (int)pid, name);
	fd = openat(dirfd(d->proc), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if ((folder = fdopendir(fd)) == NULL)
		close(fd);
	return folder;
}
