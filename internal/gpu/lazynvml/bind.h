/* Opens the library and points every function at it; 0, or -1 with the reason. */
int sglaunch_nvml_load(const char *path, char *why, unsigned long size);

/* Whether the library that was loaded has the function. */
int sglaunch_nvml_has(const char *name);
