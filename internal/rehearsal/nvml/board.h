/* board.h - what the board file and the notes of the processes say. */
#ifndef REHEARSAL_BOARD_H
#define REHEARSAL_BOARD_H

#include <stddef.h>

#include "nvml.h"

/* Text of a key; 0 if the board has none. Of a number, the default then. */
int board_text(const char *key, char *out, size_t size);
u64 board_number(const char *key, u64 otherwise);

/* The same for "INDEX.key". */
int gpu_text(u32 gpu, const char *key, char *out, size_t size);
u64 gpu_number(u32 gpu, const char *key, u64 otherwise);

/* Path of the board with a suffix; 0 if there is no board. */
int board_path(const char *suffix, char *out, size_t size);

/* The handle of a GPU or a MIG instance. */
nvmlDevice_t gpu_at(u32 index);

/* Whether nvmlInit has been called. */
int library_ready(void);

/* One process and what it holds. pid 0: memory whose process is gone, not yet released. */
struct note { u32 pid, gpu; u64 bytes; u32 util, memutil, power; };

/* CPU time of this thread in ns; metered adds what was used since to the time
 * that the library is said to take. */
u64 cpu_time(void);
void metered(u64 began);

/* The notes of one GPU, at most max; returns how many. Notes of the dead are cleared away. */
int notes_of(u32 gpu, struct note *out, int max);

#endif
