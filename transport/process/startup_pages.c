#include "transport/process/startup_pages.h"

#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Whether code was written to as it was loaded, and is not as in the file. */
static bool
has_text_relocations(const struct dl_phdr_info *o)
{
	const ElfW(Dyn) *d;
	size_t i;

	for (i = 0; i < o->dlpi_phnum; i++) {
		if (o->dlpi_phdr[i].p_type != PT_DYNAMIC)
			continue;
		d = (const ElfW(Dyn) *)(o->dlpi_addr +
		    o->dlpi_phdr[i].p_vaddr);
		for (; d->d_tag != DT_NULL; d++)
			if (d->d_tag == DT_TEXTREL ||
			    (d->d_tag == DT_FLAGS &&
				(d->d_un.d_val & DF_TEXTREL) != 0))
				return true;
	}
	return false;
}

/*
 * Pages that cannot have been written to are the same when they are read again.
 */
static int
forget_object(struct dl_phdr_info *o, size_t size, void *arg)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin, end;
	const ElfW(Phdr) *p;
	size_t i;

	if (has_text_relocations(o))
		return 0;
	for (i = 0; i < o->dlpi_phnum; i++) {
		p = &o->dlpi_phdr[i];
		if (p->p_type != PT_LOAD || (p->p_flags & PF_W) != 0)
			continue;
		begin = (o->dlpi_addr + p->p_vaddr + page - 1) & -page;
		end = (o->dlpi_addr + p->p_vaddr + p->p_memsz) & -page;
		if (begin < end)
			(void)madvise((void *)begin, end - begin,
			    MADV_DONTNEED);
	}
	return 0;
}

void
startup_pages_drop(void)
{
	(void)dl_iterate_phdr(forget_object, NULL);
	(void)malloc_trim(0);
}
