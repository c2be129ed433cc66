/* board.c - reads the board anew at every question: tests rewrite it at will. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "board.h"

int board_path(const char *suffix, char *out, size_t size)
{
	const char *path = getenv("SGLAUNCH_REHEARSAL_NVML");
	return path && *path && (size_t)snprintf(out, size, "%s%s", path, suffix) < size;
}

/* The CPU time that the library itself takes, which a real one would not, is
 * added to the number in the file that SGLAUNCH_REHEARSAL_NVML_TIME names, in ns. */
static u64 *meter(void)
{
	static u64 *spent, unread;
	const char *path = getenv("SGLAUNCH_REHEARSAL_NVML_TIME");
	int fd;

	if (spent || !path)
		return spent ? spent : &unread;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0 || ftruncate(fd, sizeof *spent))
		return &unread;
	spent = mmap(NULL, sizeof *spent, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (spent == MAP_FAILED)
		spent = &unread;
	return spent;
}

void metered(u64 began)
{
	__atomic_add_fetch(meter(), cpu_time() - began, __ATOMIC_RELAXED);
}

u64 cpu_time(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static int find_text(const char *key, char *out, size_t size)
{
	char path[4096], line[8192];
	size_t length = strlen(key);
	FILE *f = board_path("", path, sizeof path) ? fopen(path, "re") : NULL;
	int found = 0;

	if (!f)
		return 0;
	while (!found && fgets(line, sizeof line, f)) {
		if (strncmp(line, key, length) || line[length] != ' ')
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(out, size, "%s", line + length + 1);
		found = 1;
	}
	fclose(f);
	return found;
}

int board_text(const char *key, char *out, size_t size)
{
	u64 began = cpu_time();
	int found = find_text(key, out, size);

	metered(began);
	return found;
}

u64 board_number(const char *key, u64 otherwise)
{
	char text[64];
	return board_text(key, text, sizeof text) ? strtoull(text, NULL, 0) : otherwise;
}

int gpu_text(u32 gpu, const char *key, char *out, size_t size)
{
	char full[128];
	snprintf(full, sizeof full, "%u.%s", gpu, key);
	return board_text(full, out, size);
}

u64 gpu_number(u32 gpu, const char *key, u64 otherwise)
{
	char text[64];
	return gpu_text(gpu, key, text, sizeof text) ? strtoull(text, NULL, 0) : otherwise;
}

/* Start time of a living process, 0 if it is gone or only waits to be reaped:
 * a driver frees the memory when a process ends, not when somebody asks why. */
static u64 start_time(u32 pid)
{
	char path[64], stat[2048], state = 'Z', *rest;
	u64 start = 0;
	size_t n;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%u/stat", pid);
	if (!(f = fopen(path, "re")))
		return 0;
	n = fread(stat, 1, sizeof stat - 1, f);
	fclose(f);
	stat[n] = 0;
	if (!(rest = strrchr(stat, ')'))) /* the name before it may hold anything */
		return 0;
	if (sscanf(rest + 2, "%c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
		   &state, &start) != 2 || state == 'Z' || state == 'X')
		return 0;
	return start;
}

/* The memory of a process that died stays for "release" ms, with no name to it; -1: for ever. */
static int still_held(const char *path)
{
	struct stat st;
	struct timespec now;
	long long release = (long long)board_number("release", 0), age;

	if (release < 0)
		return 1;
	if (stat(path, &st))
		return 0;
	clock_gettime(CLOCK_REALTIME, &now);
	age = (now.tv_sec - st.st_mtim.tv_sec) * 1000LL + (now.tv_nsec - st.st_mtim.tv_nsec) / 1000000;
	return age < release;
}

static int read_note(const char *path, u64 *start, struct note *n)
{
	FILE *f = fopen(path, "re");
	int got;

	if (!f)
		return 0;
	got = fscanf(f, "%llu %u %llu %u %u %u", start, &n->gpu, &n->bytes, &n->util, &n->memutil, &n->power);
	fclose(f);
	return got == 6;
}

/* A process that is gone: its note becomes PID.dead, as old as the discovery of the death. */
static void bury(const char *path)
{
	char dead[4096 + 310];

	if (board_number("release", 0) == 0) {
		unlink(path);
		return;
	}
	snprintf(dead, sizeof dead, "%s.dead", path);
	utimensat(0, path, NULL, 0);
	rename(path, dead);
}

/* Reads the note in path; pid becomes 0 if its process is gone. 0: nothing is held any more. */
static int living_note(const char *path, const char *name, struct note *n)
{
	int dead = strstr(name, ".dead") != NULL;
	u64 start;

	n->pid = strtoul(name, NULL, 10);
	if (!n->pid || strstr(name, ".new") || !read_note(path, &start, n))
		return 0;
	if (!dead && start_time(n->pid) == start)
		return 1;
	if (!dead) {
		bury(path);
		if (board_number("release", 0) == 0)
			return 0;
	} else if (!still_held(path)) {
		unlink(path);
		return 0;
	}
	n->pid = n->util = n->memutil = n->power = 0;
	return 1;
}

static int find_notes(u32 gpu, struct note *out, int max)
{
	char folder[4096], path[4096 + 300];
	struct dirent *e;
	struct note n;
	int count = 0;
	DIR *d = board_path(".d", folder, sizeof folder) ? opendir(folder) : NULL;

	if (!d)
		return 0;
	while (count < max && (e = readdir(d))) {
		snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
		if (e->d_name[0] != '.' && living_note(path, e->d_name, &n) && n.gpu == gpu)
			out[count++] = n;
	}
	closedir(d);
	return count;
}

int notes_of(u32 gpu, struct note *out, int max)
{
	u64 began = cpu_time();
	int count = find_notes(gpu, out, max);

	metered(began);
	return count;
}
