#include "service/limits/disk_free.h"

#include <linux/magic.h>
#include <sys/vfs.h>

bool
disk_is_local(int fd)
{
	struct statfs fs;

	if (fd < 0 || fstatfs(fd, &fs) != 0)
		return false;
	/* File systems that are known to answer; FUSE may be anything. */
	switch ((unsigned long)fs.f_type) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case TMPFS_MAGIC:
	case OVERLAYFS_SUPER_MAGIC:
	case 0x2fc12fc1ul: /* ZFS */
	case 0xca451a4eul: /* bcachefs */
		return true;
	}
	return false;
}

bool
disk_free_bytes(int fd, uint64_t *bytes)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return false;
	*bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_frsize;
	return true;
}
