// CLua: runs untrusted Lua text behind an interface of flat values.
//
// This target owns every call of the Lua API. With a memory limit, almost every call can raise, and raising is a
// longjmp. Therefore, all calls run in C under one protected call, and no Swift frame is ever between an error and its
// handler. Swift passes and receives flat values. Callbacks into Swift return a status and a flat value; C raises after
// the Swift frame has returned.
//
// CLua does not know what scripts are for. Swift registers the functions that scripts may call, gives the values that
// they make their meaning, and says what to use instead of names that the sandbox leaves out.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// One Lua state with its sandbox. Belongs to one thread at a time.
typedef struct clua_state clua_state;

/// How a protected run ended.
typedef enum {
  CLUA_OK = 0,
  /// The script raised an error or cannot be parsed; see `clua_message` and `clua_line`.
  CLUA_ERROR,
  /// Killed. No pcall of the script can catch the following three.
  CLUA_KILLED_STEPS,
  CLUA_KILLED_MEMORY,
  CLUA_KILLED_TIME,
  /// The machine has run out of memory.
  CLUA_NO_MEMORY,
} clua_status;

/// The budget of one run.
typedef struct {
  /// VM instructions, and the work of library functions in the same unit.
  uint64_t steps;
  /// Bytes allocated in this run, whether or not they were freed. A kill must not depend on the timing of garbage
  /// collection.
  uint64_t bytes;
  /// A backstop behind the other two; 0: none. Wall-clock time, confirmed by the thread's processor time, so that a
  /// loaded machine does not stop short runs.
  uint64_t nanoseconds;
} clua_budget;

/// The kinds of a flat value.
typedef enum {
  CLUA_NIL = 0,
  CLUA_BOOLEAN,
  CLUA_INTEGER,
  CLUA_NUMBER,
  CLUA_STRING,
  CLUA_TABLE,
  CLUA_FUNCTION,
  /// Made by a constructor; `bytes` is its name.
  CLUA_TAGGED,
  CLUA_ALLOW,
  /// `bytes` is the reason.
  CLUA_DENY,
  /// `bytes` is the argument.
  CLUA_REQUIRE_ALSO,
  /// Any other value; `bytes` is its Lua type.
  CLUA_OTHER,
} clua_kind;

/// A value that is passed between Swift and C.
typedef struct {
  clua_kind kind;
  bool boolean;
  int64_t integer;
  double number;
  /// Not null-terminated. From C: valid until the next call on the state. From Swift: valid until the callback is
  /// called again.
  const char *bytes;
  size_t length;
} clua_value;

/// Reads one fact for the running function.
///
/// `key` is NULL for a plain fact. For a set, it is the requested member; with `key` NULL and `index` >= 0, the name of
/// the set's `index`th member in sorted order is requested (as CLUA_STRING; CLUA_NIL at the end).
/// Returns 0, or another number with the error message in `*value`.
typedef int (*clua_fact_reader)(void *context, int32_t slot, const char *key, size_t key_length, int64_t index,
  clua_value *value);

/// Computes the hour (0 to 23) of a time in a time zone; returns as above.
typedef int (*clua_hour_reader)(void *context, int64_t seconds, const char *zone, size_t zone_length,
  clua_value *value);

/// The callbacks of Swift.
typedef struct {
  void *context;
  clua_fact_reader fact;
  clua_hour_reader hour;
  /// A clock in nanoseconds for the time budget; NULL: the system's monotonic clock.
  uint64_t (*clock)(void *context);
} clua_callbacks;

/// A value of a loaded tree, in pre-order: a table or tagged value is followed by its `children`.
typedef struct {
  clua_kind kind;
  /// The key of the value: CLUA_NIL (the root), CLUA_STRING or CLUA_INTEGER.
  clua_kind key_kind;
  int64_t key_integer;
  /// Offsets into the tree's text.
  size_t key_offset, key_length;
  size_t text_offset, text_length;
  bool boolean;
  int64_t integer;
  double number;
  int32_t children;
  /// For a table: the number that `_moongate_at` recorded for its constructor; otherwise -1.
  int32_t mark;
  /// For a function: its number for `clua_call`; otherwise -1.
  int32_t function;
  /// For a function: the line of its definition. For a tagged value: the line of the chunk where it was made. Otherwise
  /// 0.
  int32_t line;
  /// For a function: the number of the module that defines it; -1: the chunk itself.
  int32_t module;
} clua_node;

/// The arguments of a constructor.
typedef enum {
  CLUA_TAKES_TABLE = 0,
  CLUA_TAKES_TEXT,
  CLUA_TAKES_TEXT_OR_TABLE,
  CLUA_TAKES_NOTHING,
  CLUA_TAKES_TABLE_OR_NOTHING,
  /// A name, optionally followed by a table: `name "title" { … }`.
  CLUA_TAKES_NAME,
  /// A table, or a name as above.
  CLUA_TAKES_TABLE_OR_NAME,
  /// The lowest value, the highest, and a function that chooses between them.
  CLUA_TAKES_BOUNDS_AND_FUNCTION,
} clua_form;

/// A global function that makes a tagged value. The name is copied.
typedef struct {
  const char *name;
  clua_form form;
} clua_constructor;

/// What to use instead of a name of Lua that the sandbox leaves out, for the error about this name. Both texts are
/// copied.
typedef struct {
  const char *name, *hint;
} clua_hint;

/// Creates a state with the sandbox loaded. Returns NULL if memory is exhausted.
clua_state *clua_new(const clua_callbacks *callbacks);
/// Adds constructors to the globals of every script: calling one makes a tagged value with its name. Existing globals
/// keep their meaning.
clua_status clua_constructors_add(clua_state *state, const clua_constructor *list, size_t count);
/// Adds hints. A later hint for the same name replaces the earlier one.
clua_status clua_hints_add(clua_state *state, const clua_hint *list, size_t count);
/// Adds a module, a chunk that scripts run by `include "name"`. `file` is its name in messages. All texts are copied.
/// Returns its number, counted from 0, or -1 if memory is exhausted.
///
/// A module runs once for each load, when it is included first. It returns a table or a function. A module that
/// includes itself, through others too, is an error.
int32_t clua_module_add(clua_state *state, const char *name, const char *file, const char *source, size_t length);
/// Frees the state. NULL is allowed.
void clua_free(clua_state *state);

/// More than five parameters: a C text is a pointer and a length.
/// Runs a chunk of Lua text and keeps the functions of the value that it returns.
///
/// Tables in upvalues of those functions are frozen, and their other upvalues are restored before each call, so that no
/// call can store anything for the next one. With `marks`, two reserved globals are available for instrumented text:
/// `_moongate_at(number, table)` records the table's number; `_moongate_took(number, value)` records whether the value
/// was true, and returns it. After CLUA_OK, the functions below read the tree, until the next load.
clua_status clua_load(clua_state *state, const char *name, const char *source, size_t length, const clua_budget *budget,
  bool marks);
/// Parses a chunk without running it.
clua_status clua_parse(clua_state *state, const char *name, const char *source, size_t length,
  const clua_budget *budget);
const clua_node *clua_tree_nodes(const clua_state *state);
size_t clua_tree_count(const clua_state *state);
const char *clua_tree_text(const clua_state *state);

/// The results of `_moongate_took` since the state was created, by number. Bit 0: a value was true. Bit 1: a value was
/// not true.
const uint8_t *clua_sides_taken(const clua_state *state, size_t *count);

/// Creates an empty table of facts. Returns its number, or -1 if memory is exhausted.
int32_t clua_facts_new(clua_state *state);
typedef enum {
  CLUA_FACT_VALUE,
  /// Members can be read by any name.
  CLUA_FACT_SET,
  /// The path is a group that has facts already. It is nil for scripts unless this fact is true.
  CLUA_FACT_PRESENCE,
} clua_fact_kind;

/// Adds `group.name` (or `name`) to the facts, read by `slot`.
clua_status clua_facts_add(clua_state *state, int32_t facts, const char *path, int32_t slot, clua_fact_kind kind);

/// Calls a kept function with the facts (-1: without facts).
clua_status clua_call(clua_state *state, int32_t function, int32_t facts, const clua_budget *budget,
  clua_value *result);

/// Likewise, but a table is a CLUA_TABLE, which the tree functions above read until the next load or call.
clua_status clua_call_for_table(clua_state *state, int32_t function, int32_t facts, const clua_budget *budget,
  clua_value *result);

/// More than five parameters: a tree is nodes, their number and a text.
/// Calls a kept function with one value: tables, texts, numbers and booleans in the form of a loaded tree, which the
/// function owns. After CLUA_OK, the tree functions above read its result, until the next load or call of this
/// function.
clua_status clua_apply(clua_state *state, int32_t function, const clua_node *nodes, size_t count, const char *text,
  const clua_budget *budget);

/// The message of the last run that was not CLUA_OK, without its position.
const char *clua_message(const clua_state *state);
/// The line of that message; 0 if it is unknown.
int32_t clua_line(const clua_state *state);
/// The number of the module to which that line belongs; -1: the chunk, or the file of the called function's chunk.
int32_t clua_line_module(const clua_state *state);
/// The cost of the last run.
uint64_t clua_steps_used(const clua_state *state);
uint64_t clua_bytes_used(const clua_state *state);
/// The number of bytes held at present.
uint64_t clua_bytes_held(const clua_state *state);

/// Parses a duration such as `1h30m`: days, hours, minutes, seconds, milliseconds (`d h m s ms`), each at most once and
/// in this order. Returns false if the text is not a duration or is longer than 100 years.
bool clua_parse_duration(const char *text, size_t length, int64_t *milliseconds);
/// The number of typing errors (a missing, extra or wrong character, or two swapped ones) between two words; 64 if one
/// is longer than 63 bytes.
int32_t clua_typing_distance(const char *left, size_t left_length, const char *right, size_t right_length);

#ifdef __cplusplus
}
#endif
