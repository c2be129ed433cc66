/* nvml.h - the part of NVML's public interface that a supervisor uses.
 *
 * Names, layouts and codes are the published ones, so that any program built
 * for the real library can load this one instead.
 */
#ifndef REHEARSAL_NVML_H
#define REHEARSAL_NVML_H

typedef unsigned int u32;
typedef unsigned long long u64;

/* GPU n of the board has the number n; its MIG instances follow from FIRST_MIG + n * MAX_MIG on. */
enum { MAX_GPUS = 64, MAX_MIG = 8, FIRST_MIG = 100, LAST_MIG = FIRST_MIG + MAX_GPUS * MAX_MIG };

enum {
	SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4,
	NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, TIMEOUT = 10, GPU_IS_LOST = 15,
	LIB_RM_VERSION_MISMATCH = 18, UNKNOWN = 999
};

typedef struct gpu { u32 index; } *nvmlDevice_t;

struct memory { u64 total, free, used; };
struct memory_v2 { u32 version; u64 total, reserved, free, used; };
struct utilization { u32 gpu, memory; };
struct process { u32 pid; u64 used; u32 gpu_instance, compute_instance; };
struct pci { char bus_id_legacy[16]; u32 domain, bus, device, id, subsystem; char bus_id[32]; };
struct fabric { unsigned char cluster[16]; u32 status, clique; unsigned char state; };
struct field { u32 id, scope; long long timestamp, latency; u32 kind; int code; u64 value; };
struct event { nvmlDevice_t device; u64 type, data; u32 gpu_instance, compute_instance; };
struct event_set;

#endif
