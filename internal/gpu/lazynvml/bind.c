#include <dlfcn.h>
#include <stdio.h>

#include "bind.h"

/* What a function answers that the library lacks: NVML_ERROR_FUNCTION_NOT_FOUND. */
static int not_found(void) { return 13; }

/* nvmlErrorString alone returns something else than a code. */
static const char *no_words(int code) { (void)code; return "unknown error"; }

enum {
#define NVML_FUNCTION(name) INDEX_##name,
#include "names.h"
#undef NVML_FUNCTION
	COUNT
};

static const char *const names[COUNT] = {
#define NVML_FUNCTION(name) #name,
#include "names.h"
#undef NVML_FUNCTION
};

/* Where trampolines.S jumps to. */
__attribute__((visibility("hidden"))) void *sglaunch_nvml_slots[COUNT] = {
#define NVML_FUNCTION(name) [INDEX_##name] = (void *)not_found,
#include "names.h"
#undef NVML_FUNCTION
	[INDEX_nvmlErrorString] = (void *)no_words,
};

static void *library;

/* The library stays for the life of the process: a call may be inside it. */
int sglaunch_nvml_load(const char *path, char *why, unsigned long size)
{
	int i;

	if (!library && !(library = dlopen(path, RTLD_LAZY | RTLD_GLOBAL))) {
		snprintf(why, size, "%s", dlerror());
		return -1;
	}
	for (i = 0; i < COUNT; i++) {
		void *f = dlsym(library, names[i]);
		if (f)
			sglaunch_nvml_slots[i] = f;
	}
	return 0;
}

int sglaunch_nvml_has(const char *name) { return library && dlsym(library, name); }
