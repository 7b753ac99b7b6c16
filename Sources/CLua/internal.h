// Declarations that the C files of CLua share. Not visible to Swift.
#pragma once

#include <lua5.4/lauxlib.h>
#include <lua5.4/lua.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "CLua.h"

// Lua truncates longer chunk names. We truncate them first, so that a position in a message can be recognised.
#define NAME_MAX_LENGTH 58
// Deeper nesting of tables is refused.
#define DEPTH_MAX 32
#define NODES_MAX 200000

typedef struct {
  int ref;         // the function
  uint64_t longest; // bytes of the longest string that its chunk created
  int restore_ref; // {function, index, value, …}: upvalues to restore before a call
  int restores;    // number of triples
  char name[NAME_MAX_LENGTH + 2]; // name of its chunk
} kept_function;

typedef struct {
  char *name, *source;
  size_t length;
  char file[NAME_MAX_LENGTH + 2]; // the name of its chunk
} module;

struct clua_state {
  lua_State *L;
  clua_callbacks callbacks;
  // Budget and usage of the current run.
  clua_budget budget;
  uint64_t steps, bytes, held;
  uint64_t longest;                 // bytes of the longest string that this run or its function's chunk created
  uint64_t since_clock;             // steps charged since the clock was last read
  uint64_t wall_started, cpu_started; // at the first clock reading of this run
  bool clock_started;
  clua_status killed; // CLUA_OK while the run may continue
  int line;           // line of the error, or the last line seen
  int seen_line;
  int line_module, seen_module; // the modules of these lines; -1: none
  module *modules;
  int32_t module_count;
  char message[1024];
  char name[NAME_MAX_LENGTH + 2]; // name of the current chunk, after Lua's "@"
  // Kept functions and facts.
  kept_function *functions;
  int32_t function_count, function_capacity;
  int *facts;
  int32_t facts_count;
  int environment, marked_environment; // registry references
  uint64_t baseline;                   // bytes held after the last full collection
  bool clean;                          // no garbage since the last full collection
  bool loading;                        // a chunk is run by clua_load
  bool settled;                        // kept values have not changed since the state outgrew them
  // The tree of the last load.
  clua_node *nodes;
  size_t node_count, node_capacity;
  char *text;
  size_t text_count, text_capacity;
  bool keeps_no_function; // the tree is the result of a call
  // The branch sides that instrumented text has recorded.
  uint8_t *sides;
  size_t side_count;
};

static inline clua_state *state_of(lua_State *L) { return *(clua_state **)lua_getextraspace(L); }

// run.c
clua_status run_protected(clua_state *S, lua_CFunction body, void *request, const clua_budget *budget);
// Charges work to the budget; raises when it is exhausted. Every loop whose length a script controls must call it.
void charge(lua_State *L, uint64_t steps);
// Marks the run as killed and raises.
void kill_run(lua_State *L, clua_status why);
void collect_garbage(clua_state *S);
// Raises an error with the position of the calling script line.
int raise(lua_State *L, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Raises the message that a callback left in the value.
int raise_answer(lua_State *L, const clua_value *value, const char *otherwise);
// Returns the line of the innermost script function, or 0, and the number of its module, or -1.
int line_at_work(lua_State *L, int *module);
// Returns the line of the innermost script function that is not of a module, or 0.
int chunk_line_at_work(lua_State *L);
// The number of the module with this name of a chunk, as in lua_Debug; -1 if none has it.
int module_of(const clua_state *S, const char *source);

// sandbox.c
void sandbox_open(lua_State *L);
// Makes the table on top read-only in place: its contents move behind a metatable.
void freeze_table(lua_State *L, int index);
// If the table at `index` is frozen, replaces it on the stack by the table behind it.
void look_through(lua_State *L, int index);
// Pushes a read-only view of the library on top, in which unknown names are errors; pops the library.
void seal_library(lua_State *L, const char *name);
// Adds functions to the table on top.
void add_functions(lua_State *L, const luaL_Reg *functions);
// Pushes any value as text without addresses.
const char *push_text(lua_State *L, int index, size_t *length);
const char *check_text(lua_State *L, int argument, size_t *length);

// Libraries; each pushes its table.
void strings_open(lua_State *L);
void tables_open(lua_State *L);
void numbers_open(lua_State *L);
void helpers_add(lua_State *L);
void constructors_add(lua_State *L);
void include_add(lua_State *L);
void ordered_pairs_add(lua_State *L);
// Pushes an array of the sorted keys of the table at `index`: booleans, numbers, strings. Raises for other keys.
void push_sorted_keys(lua_State *L, int index);
// Whether the value is a state of `pairs`, which holds a table.
bool is_pairs_state(lua_State *L, int index);

// constructors.c
typedef struct {
  clua_kind kind; // CLUA_TAGGED, CLUA_ALLOW, CLUA_DENY or CLUA_REQUIRE_ALSO
  const char *name;
  int values; // user values in use
  int line;
  bool has_title; // can be called with its table
} tagged;
tagged *to_tagged(lua_State *L, int index);

// module.c
// Forgets the values of modules, before a load.
void modules_reset(lua_State *L);

// facts.c
void facts_open(lua_State *L);
bool is_facts(lua_State *L, int index);
// Pushes an array of the sorted keys of the facts or set at `index`.
void push_fact_keys(lua_State *L, int index);

// sandbox.c: the registry holds the table from tables to their constructors under this address.
extern int mark_key;

// arguments.c
// The body of `clua_apply`.
int apply_body(lua_State *L);
typedef struct {
  int32_t function;
  const clua_node *nodes;
  size_t count;
  const char *text;
} apply_request;

// run.c: pushes a kept function, with its upvalues restored.
void push_kept(lua_State *L, int32_t function);

// keep.c
void keep_result(lua_State *L, clua_state *S);
void put_back(lua_State *L, kept_function *function);

// A growing byte buffer in a userdata at a stack index, so that raising an error cannot leak it.
typedef struct {
  lua_State *L;
  int index;
  char *bytes;
  size_t count, capacity;
} buffer;
void buffer_begin(buffer *b, lua_State *L); // pushes one value
void buffer_add(buffer *b, const char *bytes, size_t count);
void buffer_push(buffer *b); // pushes the string

// pattern.c
int pattern_find(lua_State *L, bool find);
int pattern_gmatch(lua_State *L);
int pattern_gsub(lua_State *L);
// The iterator that `gmatch` returns. It advances with each call, so it must not be kept.
int gmatch_step(lua_State *L);

// suggestion.c
// Pushes "; did you mean `x`?" with the key of the table at `index` that is most similar to the word, or an empty
// string.
void push_suggestion(lua_State *L, int index, const char *word, size_t length);
// Pushes "; available: `a`, `b` and `c`": the sorted keys of the table at `index`, as many as fit into a message.
// Pushes an empty string if none exist.
void push_names(lua_State *L, int index);
