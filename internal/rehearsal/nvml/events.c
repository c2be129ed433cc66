/* events.c - event sets. Events are lines "GPU TYPE DATA" appended to BOARD.events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "board.h"

int nvmlDeviceCheck(nvmlDevice_t d);

/* A set sees what is sent after it was made, each set for itself. */
struct event_set { long at; u64 masks[MAX_GPUS]; };

static long end_of_events(void)
{
	char path[4096];
	FILE *f = board_path(".events", path, sizeof path) ? fopen(path, "re") : NULL;
	long end = 0;

	if (!f)
		return 0;
	if (!fseek(f, 0, SEEK_END))
		end = ftell(f);
	fclose(f);
	return end;
}

int nvmlEventSetCreate(struct event_set **out)
{
	if (!library_ready())
		return UNINITIALIZED;
	if (!(*out = calloc(1, sizeof **out)))
		return UNKNOWN;
	(*out)->at = end_of_events();
	return SUCCESS;
}

int nvmlEventSetFree(struct event_set *set)
{
	free(set);
	return SUCCESS;
}

int nvmlDeviceRegisterEvents(nvmlDevice_t d, u64 mask, struct event_set *set)
{
	int code = nvmlDeviceCheck(d);

	if (code == SUCCESS && d->index < MAX_GPUS)
		set->masks[d->index] |= mask;
	return code;
}

/* The next event that the set asked for, if the file has one: 1. */
static int next_event(struct event_set *set, struct event *out)
{
	char path[4096], line[128];
	u64 type, data;
	u32 gpu;
	int found = 0;
	FILE *f = board_path(".events", path, sizeof path) ? fopen(path, "re") : NULL;

	if (!f)
		return 0;
	if (!fseek(f, set->at, SEEK_SET))
		while (!found && fgets(line, sizeof line, f) && strchr(line, '\n')) {
			set->at = ftell(f);
			if (sscanf(line, "%u %llu %llu", &gpu, &type, &data) != 3 || gpu >= MAX_GPUS || !(set->masks[gpu] & type))
				continue;
			*out = (struct event){gpu_at(gpu), type, data, ~0u, ~0u};
			found = 1;
		}
	fclose(f);
	return found;
}

static int wait_for_event(struct event_set *set, struct event *out, u32 milliseconds)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (;;) {
		if (!library_ready())
			return UNINITIALIZED;
		if (next_event(set, out))
			return SUCCESS;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if ((now.tv_sec - begin.tv_sec) * 1000LL + (now.tv_nsec - begin.tv_nsec) / 1000000 >= milliseconds)
			return TIMEOUT;
		usleep(10000);
	}
}

int nvmlEventSetWait_v2(struct event_set *set, struct event *out, u32 milliseconds)
{
	u64 began = cpu_time();
	int code = wait_for_event(set, out, milliseconds);

	metered(began);
	return code;
}

int nvmlEventSetWait(struct event_set *set, struct event *out, u32 milliseconds) { return nvmlEventSetWait_v2(set, out, milliseconds); }
