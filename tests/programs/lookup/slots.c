/*
 * A preload whose constructor writes every slot with a symbol of every object into the file that SLOTS names, and ends the
 * process: OBJECT TYPE SYMBOL ADDEND-OFFSET = WHAT. WHAT is an object and an offset in it, a number, or elsewhere.
 * Linked with -z initfirst, so that no other constructor has changed anything.
 * Libraries in OPEN (words of FLAG:PATH) are opened before. Nothing of the program runs.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct object {
	const char *name;
	ElfW(Addr) bias;
	const ElfW(Phdr) *headers;
	int count;
};

static struct object objects[4096];
static int object_count;
static FILE *out;

static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int collect(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size, (void)data;
	struct object *object = &objects[object_count];

	if (object_count == 4096)
		return 1;
	object->name = object_count ? base(info->dlpi_name) : "program";
	object->bias = info->dlpi_addr;
	object->headers = info->dlpi_phdr;
	object->count = info->dlpi_phnum;
	object_count++;
	return 0;
}

/* Objects whose pages hold the address; up to `behind` more bytes, since an addend may lead out of its object. */
static const struct object *holder(ElfW(Addr) address, ElfW(Addr) behind)
{
	for (int i = 0; i < object_count; i++)
		for (int j = 0; j < objects[i].count; j++) {
			const ElfW(Phdr) *header = &objects[i].headers[j];
			ElfW(Addr) start = objects[i].bias + header->p_vaddr;

			if (header->p_type == PT_LOAD && address >= start && address < start + header->p_memsz + behind)
				return &objects[i];
		}
	return NULL;
}

static const char *type_name(unsigned type)
{
	switch (type) {
	case R_X86_64_64: return "64";
	case R_X86_64_GLOB_DAT: return "GLOB_DAT";
	case R_X86_64_JUMP_SLOT: return "JUMP_SLOT";
	case R_X86_64_COPY: return "COPY";
	case R_X86_64_DTPMOD64: return "DTPMOD64";
	case R_X86_64_DTPOFF64: return "DTPOFF64";
	case R_X86_64_TPOFF64: return "TPOFF64";
	default: return NULL;
	}
}

static void table(const struct object *object, const ElfW(Rela) *at, size_t bytes, const ElfW(Sym) *symbols, const char *names)
{
	for (size_t i = 0; i < bytes / sizeof *at; i++) {
		const char *type = type_name(ELF64_R_TYPE(at[i].r_info));
		const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(at[i].r_info)];
		ElfW(Addr) value;

		if (!type || !ELF64_R_SYM(at[i].r_info))
			continue;
		fprintf(out, "%s %s %s %#lx = ", object->name, type, names + symbol->st_name, (long)at[i].r_offset);
		memcpy(&value, (void *)(object->bias + at[i].r_offset), sizeof value);
		const struct object *in = holder(value, 0);
		if (!in)
			in = holder(value, 4096);
		if (in)
			fprintf(out, "%s+%#lx\n", in->name, (long)(value - in->bias));
		else if (value < 1 << 20 || value > -(ElfW(Addr))(1 << 20))
			fprintf(out, "%ld\n", (long)value);
		else
			fprintf(out, "elsewhere\n"); /* stack or heap: other in every process */
	}
}

static ElfW(Addr) pointer(const struct object *object, ElfW(Addr) value)
{
	/* glibc adds the bias to these in place; not so in the vDSO. */
	return value < object->bias ? value + object->bias : value;
}

static void dump(const struct object *object)
{
	const ElfW(Dyn) *entry = NULL;
	ElfW(Addr) values[64] = { 0 };

	for (int j = 0; j < object->count; j++)
		if (object->headers[j].p_type == PT_DYNAMIC)
			entry = (void *)(object->bias + object->headers[j].p_vaddr);
	for (; entry && entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag >= 0 && entry->d_tag < 64)
			values[entry->d_tag] = entry->d_un.d_val;
	const ElfW(Sym) *symbols = (void *)pointer(object, values[DT_SYMTAB]);
	const char *names = (void *)pointer(object, values[DT_STRTAB]);
	if (values[DT_RELA])
		table(object, (void *)pointer(object, values[DT_RELA]), values[DT_RELASZ], symbols, names);
	if (values[DT_JMPREL])
		table(object, (void *)pointer(object, values[DT_JMPREL]), values[DT_PLTRELSZ], symbols, names);
}

/* The C library has not seen its environment yet. */
static char *variable(char **environment, const char *name)
{
	size_t length = strlen(name);

	for (; *environment; environment++)
		if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
			return *environment + length + 1;
	return NULL;
}

__attribute__((constructor)) static void slots(int argc, char **argv, char **environment)
{
	char *list = variable(environment, "OPEN");
	char *path = variable(environment, "SLOTS");

	(void)argc, (void)argv;

	for (char *word = list ? strtok(strdup(list), " ") : NULL; word; word = strtok(NULL, " ")) {
		int flags = RTLD_NOW;

		if (word[0] == 'g')
			flags |= RTLD_GLOBAL;
		if (word[0] == 'd')
			flags |= RTLD_DEEPBIND;
		if (!dlopen(word + 2, flags)) {
			fprintf(stderr, "%s\n", dlerror());
			_exit(3);
		}
	}
	out = path ? fopen(path, "w") : NULL;
	if (!out)
		_exit(4);
	dl_iterate_phdr(collect, NULL);
	for (int i = 0; i < object_count; i++)
		dump(&objects[i]);
	if (fclose(out))
		_exit(5);
	_exit(0);
}
