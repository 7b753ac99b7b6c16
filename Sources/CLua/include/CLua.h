// CLua: Lua for text that nobody trusts, behind a wall of flat values.
//
// This target owns every Lua API call of Moongate. With a memory cap almost each of them can raise, and a raise is a
// longjmp; so all of them run in C under one protected call, and no Swift frame ever lies between the raise and its
// catch. Swift hands over flat values and gets flat values back. Callbacks into Swift answer with a status and a flat
// value; C raises, after the Swift frame has returned.
//
// It does not know what a policy means: fields, durations in places, limits and flows are MoongatePolicy's.
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
  /// The script raised an error or cannot be parsed; see `clua_message`, `clua_line`.
  CLUA_ERROR,
  /// Killed: no pcall of the script can catch these three.
  CLUA_KILLED_STEPS,
  CLUA_KILLED_MEMORY,
  CLUA_KILLED_TIME,
  /// The machine itself has no memory left.
  CLUA_NO_MEMORY,
} clua_status;

/// What one run may cost.
typedef struct {
  /// VM instructions, and the work of library functions in the same coin.
  uint64_t steps;
  /// Bytes allocated in this run, freed or not: what decides a kill must not depend on when garbage is collected.
  uint64_t bytes;
  /// The backstop behind the other two; 0: none. Wall clock, confirmed by the thread's own processor time, so that a
  /// loaded machine does not refuse people.
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
  /// Made by a constructor or `vary`; `bytes` names it.
  CLUA_TAGGED,
  CLUA_ALLOW,
  /// `bytes` is the reason.
  CLUA_DENY,
  /// `bytes` is the provider.
  CLUA_REQUIRE_ALSO,
  /// Anything else; `bytes` names its Lua type.
  CLUA_OTHER,
} clua_kind;

/// A value that crosses the wall.
typedef struct {
  clua_kind kind;
  bool boolean;
  int64_t integer;
  double number;
  /// Not terminated. From C: valid until the next call on the state. From Swift: until the callback is called again.
  const char *bytes;
  size_t length;
} clua_value;

/// Reads one fact for the running function.
///
/// `key` is NULL for a plain fact. For a set it is the member asked for; with `key` NULL and `index` >= 0 the set's
/// `index`th member name in sorted order is asked for (as CLUA_STRING; CLUA_NIL at the end).
/// Returns 0, or another number with the sentence of the error in `*value`.
typedef int (*clua_fact_reader)(void *context, int32_t slot, const char *key, size_t key_length, int64_t index,
  clua_value *value);

/// The hour (0 to 23) of a moment in a time zone; answers as above.
typedef int (*clua_hour_reader)(void *context, int64_t seconds, const char *zone, size_t zone_length,
  clua_value *value);

/// What Swift answers to.
typedef struct {
  void *context;
  clua_fact_reader fact;
  clua_hour_reader hour;
  /// Nanoseconds for the time budget; NULL: the system's monotonic clock.
  uint64_t (*clock)(void *context);
} clua_callbacks;

/// One value of a loaded tree, in pre-order: a table or tagged value is followed by its `children`.
typedef struct {
  clua_kind kind;
  /// The key under which it hangs: CLUA_NIL (the root), CLUA_STRING or CLUA_INTEGER.
  clua_kind key_kind;
  int64_t key_integer;
  /// Offsets into the tree's text.
  size_t key_offset, key_length;
  size_t text_offset, text_length;
  bool boolean;
  int64_t integer;
  double number;
  int32_t children;
  /// Of a table: the number given to its constructor by `_moongate_at`; else -1.
  int32_t mark;
  /// Of a function: by what `clua_call` calls it; else -1.
  int32_t function;
  /// Of a function: where it is defined. Of a tagged value: where it was made. Else 0.
  int32_t line;
} clua_node;

/// What a constructor is called with.
typedef enum {
  CLUA_TAKES_TABLE = 0,
  CLUA_TAKES_TEXT,
  CLUA_TAKES_TEXT_OR_TABLE,
  CLUA_TAKES_NOTHING,
  CLUA_TAKES_TABLE_OR_NOTHING,
  /// A name, and where one is wanted a table behind it: `name "title" { … }`.
  CLUA_TAKES_NAME,
} clua_form;

/// A word that makes a tagged value. The name is copied.
typedef struct {
  const char *name;
  clua_form form;
} clua_constructor;

/// Makes a state with the sandbox loaded. NULL when there is no memory.
clua_state *clua_new(const clua_callbacks *callbacks);
/// Adds constructors to the globals of every script: a call makes a tagged value of the name. A global that exists
/// keeps its meaning.
clua_status clua_constructors_add(clua_state *state, const clua_constructor *list, size_t count);
/// Frees all of it. NULL is allowed.
void clua_free(clua_state *state);

/// Runs a chunk of Lua text and keeps the functions of the value that it returns. Tables that those functions hold as
/// upvalues are frozen and the rest of their upvalues is put back before each call, so that no call can leave anything
/// for the next. With `marks` two reserved globals are there for text that was instrumented:
/// `_moongate_at(number, table)` notes the table's number; `_moongate_took(number, value)` notes whether the value was
/// true, and gives it back. On CLUA_OK the tree is read by the functions below, until the next load.
clua_status clua_load(clua_state *state, const char *name, const char *source, size_t length, const clua_budget *budget,
  bool marks);
/// Parses only.
clua_status clua_parse(clua_state *state, const char *name, const char *source, size_t length,
  const clua_budget *budget);
const clua_node *clua_tree_nodes(const clua_state *state);
size_t clua_tree_count(const clua_state *state);
const char *clua_tree_text(const clua_state *state);

/// What `_moongate_took` saw since the state was made, by its numbers: bit 0 where a value was true, bit 1 where one
/// was not.
const uint8_t *clua_sides_taken(const clua_state *state, size_t *count);

/// Makes an empty table of facts; its number, or -1 without memory.
int32_t clua_facts_new(clua_state *state);
/// Adds `group.name` (or `name`) to the facts, read by `slot`; `is_set` makes its members readable by any name.
clua_status clua_facts_add(clua_state *state, int32_t facts, const char *path, int32_t slot, bool is_set);

/// Calls a kept function with the facts (-1: with none).
clua_status clua_call(clua_state *state, int32_t function, int32_t facts, const clua_budget *budget,
  clua_value *result);

/// About the last run that was not CLUA_OK: a sentence without its position.
const char *clua_message(const clua_state *state);
/// And its line; 0 where it is not known.
int32_t clua_line(const clua_state *state);
/// What the last run cost.
uint64_t clua_steps_used(const clua_state *state);
uint64_t clua_bytes_used(const clua_state *state);
/// Bytes held at present.
uint64_t clua_bytes_held(const clua_state *state);

/// Reads `1h30m`: days, hours, minutes, seconds, milliseconds (`d h m s ms`), each at most once and in this order.
/// False where the text is not one or is longer than 100 years.
bool clua_parse_duration(const char *text, size_t length, int64_t *milliseconds);
/// How many typing errors (a character too many, missing, wrong, or two swapped) lie between two words; 64 where one is
/// longer than 63 bytes.
int32_t clua_typing_distance(const char *left, size_t left_length, const char *right, size_t right_length);

#ifdef __cplusplus
}
#endif
