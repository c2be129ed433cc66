/* system.c - beginning and end, the driver's versions, and how to find a GPU. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "board.h"

static struct gpu gpus[LAST_MIG];
static int users;

int library_ready(void) { return users > 0; }

nvmlDevice_t gpu_at(u32 index)
{
	gpus[index].index = index;
	return &gpus[index];
}

int nvmlInitWithFlags(u32 flags)
{
	int code = board_number("init.code", SUCCESS);

	(void)flags;
	usleep(1000 * board_number("init.hang", 0));
	if (code == SUCCESS)
		__sync_fetch_and_add(&users, 1);
	return code;
}

int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlInit(void) { return nvmlInitWithFlags(0); }

int nvmlShutdown(void)
{
	if (!library_ready())
		return UNINITIALIZED;
	__sync_fetch_and_sub(&users, 1);
	return SUCCESS;
}

const char *nvmlErrorString(int code)
{
	switch (code) {
	case SUCCESS: return "Success";
	case UNINITIALIZED: return "Uninitialized";
	case INVALID_ARGUMENT: return "Invalid Argument";
	case NOT_SUPPORTED: return "Not Supported";
	case NO_PERMISSION: return "Insufficient Permissions";
	case NOT_FOUND: return "Not Found";
	case INSUFFICIENT_SIZE: return "Insufficient Size";
	case DRIVER_NOT_LOADED: return "Driver Not Loaded";
	case TIMEOUT: return "Timeout";
	case GPU_IS_LOST: return "GPU is lost";
	case LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
	default: return "Unknown Error";
	}
}

static int put(const char *text, char *out, u32 size)
{
	if (strlen(text) + 1 > size)
		return INSUFFICIENT_SIZE;
	strcpy(out, text);
	return SUCCESS;
}

int nvmlSystemGetDriverVersion(char *out, u32 size)
{
	char text[80] = "580.95.05";

	if (!library_ready())
		return UNINITIALIZED;
	board_text("driver", text, sizeof text);
	return put(text, out, size);
}

int nvmlSystemGetNVMLVersion(char *out, u32 size) { return put("13.580.95.05", out, size); }

int nvmlSystemGetCudaDriverVersion_v2(int *out)
{
	*out = board_number("cuda", 13000);
	return SUCCESS;
}

int nvmlSystemGetCudaDriverVersion(int *out) { return nvmlSystemGetCudaDriverVersion_v2(out); }

int nvmlSystemGetProcessName(u32 pid, char *out, u32 size)
{
	char path[64];
	size_t n;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
	if (!(f = fopen(path, "re")))
		return NOT_FOUND;
	n = fread(out, 1, size - 1, f);
	fclose(f);
	out[n] = 0;
	return SUCCESS;
}

int nvmlDeviceGetCount_v2(u32 *out)
{
	if (!library_ready())
		return UNINITIALIZED;
	*out = board_number("gpus", 0);
	if (*out > MAX_GPUS)
		*out = MAX_GPUS;
	return SUCCESS;
}

int nvmlDeviceGetCount(u32 *out) { return nvmlDeviceGetCount_v2(out); }

int nvmlDeviceGetHandleByIndex_v2(u32 index, nvmlDevice_t *out)
{
	u32 count;
	int code = nvmlDeviceGetCount_v2(&count);

	if (code != SUCCESS)
		return code;
	if (index >= count)
		return INVALID_ARGUMENT;
	*out = gpu_at(index);
	return SUCCESS;
}

int nvmlDeviceGetHandleByIndex(u32 index, nvmlDevice_t *out) { return nvmlDeviceGetHandleByIndex_v2(index, out); }

int nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *out)
{
	char text[96];
	u32 count, i;
	int code = nvmlDeviceGetCount_v2(&count);

	if (code != SUCCESS)
		return code;
	for (i = 0; i < count; i++)
		if (gpu_text(i, "uuid", text, sizeof text) && !strcmp(text, uuid)) {
			*out = gpu_at(i);
			return SUCCESS;
		}
	return NOT_FOUND;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *out)
{
	u32 count, bus;
	int code = nvmlDeviceGetCount_v2(&count);

	if (code != SUCCESS)
		return code;
	if (sscanf(bus_id, "%*x:%x:", &bus) != 1 || bus < 1 || bus > count)
		return NOT_FOUND;
	*out = gpu_at(bus - 1);
	return SUCCESS;
}
