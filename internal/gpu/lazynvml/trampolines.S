/* One jump for each function of names.h, through the slot of the same number. */
#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))

#define SLOT sglaunch_nvml_slots + 8 * \@

.macro trampoline name
	.globl \name
	.hidden \name
	.type \name, %function
\name:
#ifdef __x86_64__
	jmp *(SLOT)(%rip)
#else
	adrp x16, SLOT
	ldr x16, [x16, :lo12:(SLOT)]
	br x16
#endif
	.size \name, . - \name
.endm

#define NVML_FUNCTION(name) trampoline name

	.text
	.balign 8
#include "names.h"
	.section .note.GNU-stack, "", %progbits

#endif
