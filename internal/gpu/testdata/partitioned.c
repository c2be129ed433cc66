/* partitioned.c - a stand-in libnvidia-ml.so.1 for one GPU in two MIG instances,
 * whose driver asks for a reset, with a process in two lists, one that does not
 * tell its memory, and event sets that always fail. Only NVIDIA's public ABI
 * (names, layouts, codes) is NVIDIA's. */
#include <stdio.h>
#include <string.h>

typedef unsigned int u32;
typedef unsigned long long u64;
struct memory_v2 { u32 version; u64 total, reserved, free, used; };
struct process { u32 pid; u64 used; u32 gpu_instance, compute_instance; };
struct field { u32 id, scope; long long timestamp, latency; u32 type, code; u64 value; };

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, GPU_IS_LOST = 15 };

/* Handles: the GPU, and its slots, of which 0 and 2 are used. */
static char gpu, slots[4];

int nvmlInit_v2(void) { return SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) { return code == GPU_IS_LOST ? "GPU is lost" : "some error"; }
int nvmlDeviceGetCount_v2(u32 *n) { *n = 1; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(u32 i, void **d) { (void)i; *d = &gpu; return SUCCESS; }

int nvmlDeviceGetUUID(char *d, char *out, u32 size)
{
	if (d == &gpu)
		snprintf(out, size, "GPU-whole");
	else
		snprintf(out, size, "MIG-%d", (int)(d - slots));
	return SUCCESS;
}

int nvmlDeviceGetName(char *d, char *out, u32 size) { snprintf(out, size, d == &gpu ? "H100" : "H100 MIG 3g.40gb"); return SUCCESS; }
int nvmlDeviceGetMigMode(char *d, u32 *now, u32 *pending) { (void)d; *now = *pending = 1; return SUCCESS; }
int nvmlDeviceGetMaxMigDeviceCount(char *d, u32 *n) { (void)d; *n = 4; return SUCCESS; }
int nvmlDeviceGetUtilizationRates(char *d, void *out) { (void)d; (void)out; return NOT_SUPPORTED; }

int nvmlDeviceGetMigDeviceHandleByIndex(char *d, u32 i, char **out)
{
	(void)d;
	if (i % 2)
		return NOT_FOUND;
	*out = &slots[i];
	return SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(char *d, struct memory_v2 *m)
{
	m->total = d == &gpu ? 80 : 40;
	m->reserved = 1;
	m->used = 10;
	m->free = m->total - 11;
	return SUCCESS;
}

static int give(u32 *n, struct process *out, const struct process *have, u32 count)
{
	u32 room = *n;

	*n = count;
	if (count > room)
		return INSUFFICIENT_SIZE;
	memcpy(out, have, count * sizeof *have);
	return SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(char *d, u32 *n, struct process *out)
{
	static const struct process all[] = {{41, 100, 0, 0}, {42, ~0ull, 0, 0}, {43, 5, 0, 0}};
	return d == &slots[2] ? give(n, out, all, 3) : give(n, out, all, 0);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(char *d, u32 *n, struct process *out)
{
	static const struct process all[] = {{41, 120, 0, 0}, {42, 7, 0, 0}};
	return d == &slots[2] ? give(n, out, all, 2) : give(n, out, all, 0);
}

int nvmlDeviceGetFieldValues(char *d, int n, struct field *f)
{
	(void)d;
	for (; n-- > 0; f++) {
		f->code = f->id == 230 ? SUCCESS : NOT_SUPPORTED;
		f->value = 1;
	}
	return SUCCESS;
}

int nvmlEventSetCreate(void **set) { *set = &gpu; return SUCCESS; }
int nvmlEventSetFree(void *set) { (void)set; return SUCCESS; }
int nvmlDeviceGetSupportedEventTypes(char *d, u64 *mask) { (void)d; *mask = 8; return SUCCESS; }
int nvmlDeviceRegisterEvents(char *d, u64 mask, void *set) { (void)d; (void)mask; (void)set; return SUCCESS; }
int nvmlEventSetWait_v2(void *set, void *event, u32 ms) { (void)set; (void)event; (void)ms; return GPU_IS_LOST; }
