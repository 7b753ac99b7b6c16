// What a call costs without any of our own: a function of plain tables, called by lua_pcall from C.
#pragma once

#include <stddef.h>
#include <stdint.h>

/// Calls the global function `decide` of the text so many times, each between two looks at the clock.
/// Writes the nanoseconds of each; returns 0, or 1 where the text does not run.
int bare_lua_times(const char *text, uint32_t *nanoseconds, size_t count);

/// Nanoseconds of the clock that it looks at.
uint64_t bare_lua_now(void);
