// What the files of CLua share. Not seen by Swift.
#pragma once

#include <lua5.4/lauxlib.h>
#include <lua5.4/lua.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "CLua.h"

// Longer chunk names are cut by Lua itself; ours are cut before, so that a position in a message can be recognised.
#define NAME_MAX_LENGTH 58
// A table of tables deeper than this is no configuration.
#define DEPTH_MAX 32
#define NODES_MAX 200000

typedef struct {
  int ref;         // the function
  uint64_t longest; // bytes of the longest string that its chunk made
  int restore_ref; // {function, index, value, …}: upvalues to put back before a call
  int restores;    // how many triples
  char name[NAME_MAX_LENGTH + 2]; // of its chunk
} kept_function;

struct clua_state {
  lua_State *L;
  clua_callbacks callbacks;
  // Budgets of the run at work.
  clua_budget budget;
  uint64_t steps, bytes, held;
  uint64_t longest;                 // bytes of the longest string that this run or its function's chunk made
  uint64_t since_clock;             // steps charged since the clock was last looked at
  uint64_t wall_started, cpu_started; // of the first look in this run
  bool clock_started;
  clua_status killed; // CLUA_OK while the run may go on
  int line;           // of the error, or the last one seen
  int seen_line;
  char message[1024];
  char name[NAME_MAX_LENGTH + 2]; // of the chunk at work, after Lua's "@"
  // Kept things.
  kept_function *functions;
  int32_t function_count, function_capacity;
  int *facts;
  int32_t facts_count;
  int environment, marked_environment; // registry references
  uint64_t baseline;                   // bytes held after the last full collection
  bool clean;                          // no garbage since then
  bool settled;                        // what is kept has not changed since the state outgrew it
  // The tree of the last load.
  clua_node *nodes;
  size_t node_count, node_capacity;
  char *text;
  size_t text_count, text_capacity;
  // What instrumented text took.
  uint8_t *sides;
  size_t side_count;
};

static inline clua_state *state_of(lua_State *L) { return *(clua_state **)lua_getextraspace(L); }

// run.c
clua_status run_protected(clua_state *S, lua_CFunction body, void *request, const clua_budget *budget);
// Charges work to the budget; raises when it is used up. Every loop of ours whose length a script decides calls it.
void charge(lua_State *L, uint64_t steps);
// Marks the run as killed and raises.
void kill_run(lua_State *L, clua_status why);
void collect_garbage(clua_state *S);
// Raises with the position of the calling script line.
int raise(lua_State *L, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Raises the sentence that a callback left in the value.
int raise_answer(lua_State *L, const clua_value *value, const char *otherwise);
// The line of the innermost script function; 0 without one.
int line_at_work(lua_State *L);

// sandbox.c
void sandbox_open(lua_State *L);
// Makes the table on top read-only in place: its contents move behind a metatable.
void freeze_table(lua_State *L, int index);
// If the table at `index` is frozen, replaces it there by the table behind.
void look_through(lua_State *L, int index);
// Pushes a read-only view of the library on top, whose unknown names are errors; pops the library.
void seal_library(lua_State *L, const char *name);
// Adds functions to the table on top.
void add_functions(lua_State *L, const luaL_Reg *functions);
// Text of any value without an address; pushes it.
const char *push_text(lua_State *L, int index, size_t *length);
const char *check_text(lua_State *L, int argument, size_t *length);

// Libraries; each pushes its table.
void strings_open(lua_State *L);
void tables_open(lua_State *L);
void numbers_open(lua_State *L);
void helpers_add(lua_State *L);
void constructors_add(lua_State *L);
void ordered_pairs_add(lua_State *L);
// Pushes an array of the keys of the table at `index` in sorted order: booleans, numbers, strings. Raises for others.
void push_sorted_keys(lua_State *L, int index);
// Of the state that `pairs` makes: it holds a table.
bool is_pairs_state(lua_State *L, int index);

// constructors.c
typedef struct {
  clua_kind kind; // CLUA_TAGGED, CLUA_ALLOW, CLUA_DENY or CLUA_REQUIRE_ALSO
  const char *name;
  int values; // user values in use
  int line;
  bool has_title; // may be called with its table
} tagged;
tagged *to_tagged(lua_State *L, int index);

// facts.c
void facts_open(lua_State *L);
bool is_facts(lua_State *L, int index);
// Pushes an array of the keys of facts or a set at `index`, sorted.
void push_fact_keys(lua_State *L, int index);

// sandbox.c: the table from a table to its constructor is in the registry under this address.
extern int mark_key;

// keep.c
void keep_result(lua_State *L, clua_state *S);
void put_back(lua_State *L, kept_function *function);

// A growing run of bytes that lives as a userdata at a stack index, so that a raise cannot leak it.
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
// The function that `gmatch` returns: it moves on with each call, so nothing may keep one.
int gmatch_step(lua_State *L);

// suggestion.c
// Pushes "; did you mean `x`?" for the key of the table at `index` nearest to the word, or an empty string.
void push_suggestion(lua_State *L, int index, const char *word, size_t length);
// Pushes "; available: `a`, `b` and `c`": the names that the table at `index` has, sorted, as many as a message takes.
// Empty where it has none.
void push_names(lua_State *L, int index);
