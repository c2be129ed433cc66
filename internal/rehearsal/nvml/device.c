/* device.c - questions about one GPU. What idle figures the board gives, the
 * notes of the processes on it raise. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "board.h"

enum { MAX_PROCESSES = 256 };

/* Every question begins here: it may hang, be refused, or find the GPU lost. */
static int ask(nvmlDevice_t d, const char *function)
{
	char key[96];
	u64 code;

	if (!library_ready())
		return UNINITIALIZED;
	if (!d)
		return INVALID_ARGUMENT;
	usleep(1000 * gpu_number(d->index, "hang", 0));
	if ((code = gpu_number(d->index, "code", SUCCESS)))
		return code;
	snprintf(key, sizeof key, "code.%s", function);
	if ((code = gpu_number(d->index, key, SUCCESS)))
		return code;
	return board_number(key, SUCCESS);
}

#define ASK(d) do { int code_ = ask(d, __func__); if (code_ != SUCCESS) return code_; } while (0)

/* Foreign processes stand in the board, "PID:BYTES,PID:BYTES"; ours in their notes. */
static int strangers(u32 gpu, struct process *out, int max)
{
	struct process next = {.gpu_instance = ~0u, .compute_instance = ~0u};
	char list[4096], *p = list;
	int count = 0, used;

	if (!gpu_text(gpu, "procs", list, sizeof list))
		return 0;
	while (count < max && sscanf(p, "%u:%llu%n", &next.pid, &next.used, &used) == 2) {
		out[count++] = next;
		p += used + (p[used] == ',');
	}
	return count;
}

static u64 taken(u32 gpu)
{
	struct note notes[MAX_PROCESSES];
	struct process others[MAX_PROCESSES];
	int n = notes_of(gpu, notes, MAX_PROCESSES), m = strangers(gpu, others, MAX_PROCESSES);
	u64 bytes = gpu_number(gpu, "used", 0);

	while (n-- > 0)
		bytes += notes[n].bytes;
	while (m-- > 0)
		bytes += others[m].used;
	return bytes;
}

/* The busiest process decides, if it is busier than the idle GPU. */
static struct note busiest(u32 gpu)
{
	struct note notes[MAX_PROCESSES], top = {
		.util = gpu_number(gpu, "util", 0), .memutil = gpu_number(gpu, "memutil", 0), .power = gpu_number(gpu, "power", 0),
	};
	int n = notes_of(gpu, notes, MAX_PROCESSES);

	while (n-- > 0) {
		if (notes[n].util > top.util) top.util = notes[n].util;
		if (notes[n].memutil > top.memutil) top.memutil = notes[n].memutil;
		if (notes[n].power > top.power) top.power = notes[n].power;
	}
	return top;
}

static int text(nvmlDevice_t d, const char *key, const char *otherwise, char *out, u32 size)
{
	char value[128];

	if (!gpu_text(d->index, key, value, sizeof value))
		snprintf(value, sizeof value, "%s", otherwise);
	if (strlen(value) + 1 > size)
		return INSUFFICIENT_SIZE;
	strcpy(out, value);
	return SUCCESS;
}

int nvmlDeviceGetName(nvmlDevice_t d, char *out, u32 size) { ASK(d); return text(d, "name", "NVIDIA B200", out, size); }
int nvmlDeviceGetUUID(nvmlDevice_t d, char *out, u32 size) { ASK(d); return text(d, "uuid", "GPU-unknown", out, size); }
int nvmlDeviceGetSerial(nvmlDevice_t d, char *out, u32 size) { ASK(d); return text(d, "serial", "1650000000000", out, size); }
int nvmlDeviceGetIndex(nvmlDevice_t d, u32 *out) { ASK(d); *out = d->index; return SUCCESS; }
int nvmlDeviceGetMinorNumber(nvmlDevice_t d, u32 *out) { ASK(d); *out = d->index; return SUCCESS; }

int nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, struct pci *out)
{
	ASK(d);
	memset(out, 0, sizeof *out);
	out->bus = d->index + 1;
	snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", out->bus);
	snprintf(out->bus_id_legacy, sizeof out->bus_id_legacy, "0000:%02X:00.0", out->bus);
	return SUCCESS;
}

int nvmlDeviceGetCudaComputeCapability(nvmlDevice_t d, int *major, int *minor)
{
	ASK(d);
	*major = gpu_number(d->index, "major", 10);
	*minor = gpu_number(d->index, "minor", 0);
	return SUCCESS;
}

/* The first form counts the driver's reserve as used, the second tells it apart. */
int nvmlDeviceGetMemoryInfo(nvmlDevice_t d, struct memory *out)
{
	ASK(d);
	out->total = gpu_number(d->index, "total", 0);
	out->used = taken(d->index) + gpu_number(d->index, "reserved", 0);
	out->free = out->total > out->used ? out->total - out->used : 0;
	return SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t d, struct memory_v2 *out)
{
	ASK(d);
	if (out->version != (sizeof *out | 2u << 24))
		return INVALID_ARGUMENT;
	out->total = gpu_number(d->index, "total", 0);
	out->reserved = gpu_number(d->index, "reserved", 0);
	out->used = taken(d->index);
	out->free = out->total > out->used + out->reserved ? out->total - out->used - out->reserved : 0;
	return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(nvmlDevice_t d, struct utilization *out)
{
	struct note top;

	ASK(d);
	top = busiest(d->index);
	out->gpu = top.util;
	out->memory = top.memutil;
	return SUCCESS;
}

static int processes(u32 gpu, struct process *out)
{
	struct note notes[MAX_PROCESSES];
	int n = notes_of(gpu, notes, MAX_PROCESSES), count = 0;

	while (n-- > 0)
		if (notes[n].pid)
			out[count++] = (struct process){notes[n].pid, notes[n].bytes, ~0u, ~0u};
	return count + strangers(gpu, out + count, MAX_PROCESSES - count);
}

int nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t d, u32 *count, struct process *out)
{
	struct process all[MAX_PROCESSES];
	u32 room, n;

	ASK(d);
	room = *count;
	n = *count = processes(d->index, all);
	if (n > room || (n && !out))
		return INSUFFICIENT_SIZE;
	memcpy(out, all, n * sizeof *all);
	return SUCCESS;
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t d, u32 *count, struct process *out)
{
	(void)out;
	ASK(d);
	*count = 0;
	return SUCCESS;
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t d, u32 *count, struct process *out)
{
	(void)out;
	ASK(d);
	*count = 0;
	return SUCCESS;
}

/* A working GPU is warmer and faster: a plain rule, so that tests can foresee it. */
int nvmlDeviceGetTemperature(nvmlDevice_t d, int sensor, u32 *out)
{
	(void)sensor;
	ASK(d);
	*out = gpu_number(d->index, "temperature", 30) + busiest(d->index).power / 25000;
	return SUCCESS;
}

int nvmlDeviceGetPowerUsage(nvmlDevice_t d, u32 *out) { ASK(d); *out = busiest(d->index).power; return SUCCESS; }

/* What a GPU has used since this process first asked, in mJ, by the power that it
 * draws at each question; a board that names a figure has the last word. */
static u64 energy(u32 gpu)
{
	static struct { u64 at, used; } meters[LAST_MIG];
	struct timespec t;
	u64 now;

	clock_gettime(CLOCK_MONOTONIC, &t);
	now = t.tv_sec * 1000ULL + t.tv_nsec / 1000000;
	if (meters[gpu].at)
		meters[gpu].used += busiest(gpu).power * (now - meters[gpu].at) / 1000;
	meters[gpu].at = now;
	return gpu_number(gpu, "energy", meters[gpu].used);
}

int nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t d, u64 *out) { ASK(d); *out = energy(d->index); return SUCCESS; }
int nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t d, u32 *out) { ASK(d); *out = gpu_number(d->index, "powerlimit", 1000000); return SUCCESS; }
int nvmlDeviceGetPowerManagementLimit(nvmlDevice_t d, u32 *out) { ASK(d); *out = gpu_number(d->index, "powerlimit", 1000000); return SUCCESS; }

int nvmlDeviceGetClockInfo(nvmlDevice_t d, int kind, u32 *out)
{
	ASK(d);
	if (kind == 2)
		*out = gpu_number(d->index, "memclock", 3996);
	else
		*out = busiest(d->index).util ? gpu_number(d->index, "boost", 1965) : gpu_number(d->index, "smclock", 120);
	return SUCCESS;
}

int nvmlDeviceGetMaxClockInfo(nvmlDevice_t d, int kind, u32 *out)
{
	ASK(d);
	*out = kind == 2 ? gpu_number(d->index, "memclock", 3996) : gpu_number(d->index, "boost", 1965);
	return SUCCESS;
}

int nvmlDeviceGetFanSpeed(nvmlDevice_t d, u32 *out)
{
	ASK(d);
	*out = gpu_number(d->index, "fan", 0);
	return *out ? SUCCESS : NOT_SUPPORTED;
}

/* Reasons: bit 0 is idle, and falls away once a process works. */
static u64 reasons(nvmlDevice_t d)
{
	u64 all = gpu_number(d->index, "reasons", 0);
	return busiest(d->index).util ? all & ~1ull : all;
}

int nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t d, u64 *out) { ASK(d); *out = reasons(d); return SUCCESS; }
int nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t d, u64 *out) { ASK(d); *out = reasons(d); return SUCCESS; }

int nvmlDeviceGetPerformanceState(nvmlDevice_t d, u32 *out) { ASK(d); *out = gpu_number(d->index, "pstate", 0); return SUCCESS; }
int nvmlDeviceGetPersistenceMode(nvmlDevice_t d, u32 *out) { ASK(d); *out = gpu_number(d->index, "persistence", 1); return SUCCESS; }
int nvmlDeviceGetComputeMode(nvmlDevice_t d, u32 *out) { ASK(d); *out = gpu_number(d->index, "computemode", 0); return SUCCESS; }

/* A GPU is partitioned if the board counts instances for it. */
int nvmlDeviceGetMigMode(nvmlDevice_t d, u32 *current, u32 *pending)
{
	ASK(d);
	*current = *pending = gpu_number(d->index, "mig", 0) > 0;
	return SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t d, u32 *out) { ASK(d); *out = MAX_MIG; return SUCCESS; }

int nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t d, u32 index, nvmlDevice_t *out)
{
	ASK(d);
	if (d->index >= MAX_GPUS || index >= gpu_number(d->index, "mig", 0))
		return NOT_FOUND;
	*out = gpu_at(FIRST_MIG + d->index * MAX_MIG + index);
	return SUCCESS;
}

int nvmlDeviceGetEccMode(nvmlDevice_t d, u32 *current, u32 *pending)
{
	ASK(d);
	*current = *pending = gpu_number(d->index, "ecc.mode", 1);
	return SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(nvmlDevice_t d, u32 kind, u32 counter, u64 *out)
{
	(void)counter;
	ASK(d);
	*out = gpu_number(d->index, kind ? "ecc.uncorrected" : "ecc.corrected", 0);
	return SUCCESS;
}

int nvmlDeviceGetRemappedRows(nvmlDevice_t d, u32 *corrected, u32 *uncorrected, u32 *pending, u32 *failed)
{
	ASK(d);
	*corrected = gpu_number(d->index, "remap.corrected", 0);
	*uncorrected = gpu_number(d->index, "remap.uncorrected", 0);
	*pending = gpu_number(d->index, "remap.pending", 0);
	*failed = gpu_number(d->index, "remap.failed", 0);
	return SUCCESS;
}

/* Fields stand in the board as "field.ID"; one that does not is not known to this driver. */
int nvmlDeviceGetFieldValues(nvmlDevice_t d, int count, struct field *fields)
{
	char key[32], text[32];
	int i;

	ASK(d);
	for (i = 0; i < count; i++) {
		snprintf(key, sizeof key, "field.%u", fields[i].id);
		fields[i].code = gpu_text(d->index, key, text, sizeof text) ? SUCCESS : INVALID_ARGUMENT;
		fields[i].kind = 1; /* an unsigned int */
		fields[i].value = gpu_number(d->index, key, 0);
	}
	return SUCCESS;
}

/* State 3 is completed: the NVLink fabric knows this GPU. */
int nvmlDeviceGetGpuFabricInfo(nvmlDevice_t d, struct fabric *out)
{
	ASK(d);
	memset(out, 0, sizeof *out);
	out->state = gpu_number(d->index, "fabric.state", 3);
	out->status = gpu_number(d->index, "fabric.status", SUCCESS);
	return SUCCESS;
}

int nvmlDeviceGetSupportedEventTypes(nvmlDevice_t d, u64 *out) { ASK(d); *out = 0x1b; return SUCCESS; }
int nvmlDeviceCheck(nvmlDevice_t d) { ASK(d); return SUCCESS; }
