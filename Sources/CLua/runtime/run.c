// Protected runs: the counting allocator, the count hook, kills that scripts cannot catch, and the protected call.
#include <stdarg.h>
#include <stdio.h>

#include "../internal.h"

// The count hook fires after this many VM instructions. The number is small because one instruction may compare two
// long strings.
#define GRAIN 100
// One instruction can compare two strings of any length without calling us. If long strings exist, each instruction is
// therefore charged like the comparison of the two longest ones: one step per this number of bytes.
#define BYTES_PER_STEP 512
// Library steps between two clock readings.
#define CLOCK_GRAIN 2048
// The amount of garbage between calls that triggers a full collection.
#define GARBAGE_MAX (64 * 1024)

static void *allocate(void *context, void *block, size_t old_size, size_t new_size) {
  clua_state *S = context;
  size_t kind = block == NULL ? old_size : 0; // Lua passes the kind of a new object instead of its old size
  if (block == NULL) old_size = 0;
  if (new_size == 0) {
    free(block);
    S->held -= old_size;
    return NULL;
  }
  if (new_size > old_size) {
    uint64_t growth = new_size - old_size;
    // After a kill, no more memory is allocated, so a script that catches "not enough memory" cannot continue.
    if (S->killed != CLUA_OK) return NULL;
    if (growth > S->budget.bytes - S->bytes) {
      S->killed = CLUA_KILLED_MEMORY;
      S->line = line_at_work(S->L, &S->line_module); // read-only: Lua has saved its position before it allocates
      return NULL;
    }
    void *grown = realloc(block, new_size);
    if (grown == NULL) return NULL;
    S->bytes += growth;
    S->held += growth;
    if (kind == LUA_TSTRING && new_size > S->longest) S->longest = new_size;
    return grown;
  }
  // Lua relies on shrinking never to fail.
  void *shrunk = realloc(block, new_size);
  S->held -= old_size - new_size;
  return shrunk != NULL ? shrunk : block;
}

static uint64_t nanoseconds(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static bool is_out_of_time(clua_state *S) {
  if (S->budget.nanoseconds == 0) return false;
  bool own = S->callbacks.clock == NULL;
  uint64_t wall = own ? nanoseconds(CLOCK_MONOTONIC) : S->callbacks.clock(S->callbacks.context);
  if (!S->clock_started) { // short runs never get here and never read the clock
    S->clock_started = true;
    S->wall_started = wall;
    S->cpu_started = own ? nanoseconds(CLOCK_THREAD_CPUTIME_ID) : 0;
    return false;
  }
  if (wall - S->wall_started <= S->budget.nanoseconds) return false;
  return !own || nanoseconds(CLOCK_THREAD_CPUTIME_ID) - S->cpu_started > S->budget.nanoseconds;
}

int line_at_work(lua_State *L, int *module) {
  lua_Debug frame;
  for (int level = 0; lua_getstack(L, level, &frame); level++) {
    lua_getinfo(L, "Sl", &frame);
    if (frame.currentline <= 0) continue;
    *module = module_of(state_of(L), frame.source);
    return frame.currentline;
  }
  *module = -1;
  return 0;
}

int chunk_line_at_work(lua_State *L) {
  lua_Debug frame;
  for (int level = 0; lua_getstack(L, level, &frame); level++) {
    lua_getinfo(L, "Sl", &frame);
    if (frame.currentline > 0 && module_of(state_of(L), frame.source) < 0) return frame.currentline;
  }
  return 0;
}

void kill_run(lua_State *L, clua_status why) {
  clua_state *S = state_of(L);
  if (S->killed == CLUA_OK) {
    S->killed = why;
    S->line = line_at_work(L, &S->line_module);
  }
  lua_pushnil(L); // a kill has no message from the script; nothing is allocated here
  lua_error(L);
}

void charge(lua_State *L, uint64_t steps) {
  clua_state *S = state_of(L);
  if (S->killed != CLUA_OK) kill_run(L, S->killed);
  if (steps > S->budget.steps - S->steps) {
    S->steps = S->budget.steps;
    kill_run(L, CLUA_KILLED_STEPS);
  }
  S->steps += steps;
  S->since_clock += steps;
  if (S->since_clock >= CLOCK_GRAIN) {
    S->since_clock = 0;
    if (is_out_of_time(S)) kill_run(L, CLUA_KILLED_TIME);
  }
}

static void count_hook(lua_State *L, lua_Debug *frame) {
  clua_state *S = state_of(L);
  lua_getinfo(L, "Sl", frame);
  S->seen_line = frame->currentline;
  S->seen_module = module_of(S, frame->source);
  S->since_clock = CLOCK_GRAIN; // every time
  charge(L, GRAIN * (1 + S->longest / BYTES_PER_STEP));
}

static int module_of_file(const clua_state *S, const char *file) {
  for (int32_t i = 0; i < S->module_count; i++)
    if (strcmp(S->modules[i].file, file) == 0) return i;
  return -1;
}

int module_of(const clua_state *S, const char *source) {
  return S->module_count > 0 && source[0] == '@' ? module_of_file(S, source + 1) : -1;
}

// Runs where the error is raised, before the stack is unwound, because the line is still known there.
static int note_line(lua_State *L) {
  clua_state *S = state_of(L);
  if (S->killed == CLUA_OK) S->line = line_at_work(L, &S->line_module);
  return 1;
}

// The position in "name:12: text" is removed from the text. It wins over the line of the innermost frame, because
// `error` may name its caller.
//
// Returns the number of bytes before the text if it begins with a position in the file; otherwise 0.
static size_t read_position(clua_state *S, const char *file, int module, const char *text, size_t length) {
  size_t name = strlen(file);
  if (length <= name + 1 || memcmp(text, file, name) != 0 || text[name] != ':') return 0;
  size_t at = name + 1;
  int line = 0;
  while (at < length && text[at] >= '0' && text[at] <= '9' && line < 100000000) line = line * 10 + (text[at++] - '0');
  if (at == name + 1 || at >= length || text[at] != ':') return 0;
  S->line = line;
  S->line_module = module;
  at++;
  return at < length && text[at] == ' ' ? at + 1 : at;
}

static void keep_message(clua_state *S, const char *text, size_t length) {
  size_t start = read_position(S, S->name, module_of_file(S, S->name), text, length);
  for (int32_t i = 0; i < S->module_count && start == 0; i++)
    start = read_position(S, S->modules[i].file, i, text, length);
  text += start, length -= start;
  if (length >= sizeof S->message) length = sizeof S->message - 1;
  memcpy(S->message, text, length);
  S->message[length] = 0;
  for (size_t i = 0; i < length; i++)
    if ((unsigned char)S->message[i] < ' ' || S->message[i] == 0x7f) S->message[i] = ' '; // one log line
}

static void explain_kill(clua_state *S) {
  if (S->line == 0) S->line = S->seen_line, S->line_module = S->seen_module;
  switch (S->killed) {
    case CLUA_KILLED_STEPS:
      snprintf(S->message, sizeof S->message, "stopped after %llu steps", (unsigned long long)S->budget.steps);
      break;
    case CLUA_KILLED_MEMORY:
      snprintf(S->message, sizeof S->message, "stopped after asking for more than %llu bytes",
        (unsigned long long)S->budget.bytes);
      break;
    default:
      snprintf(S->message, sizeof S->message, "stopped after %g ms", (double)S->budget.nanoseconds / 1e6);
      break;
  }
}

clua_status run_protected(clua_state *S, lua_CFunction body, void *request, const clua_budget *budget) {
  lua_State *L = S->L;
  static const clua_budget unbounded = {UINT64_MAX, UINT64_MAX, 0};
  S->budget = budget != NULL ? *budget : unbounded;
  S->steps = S->bytes = S->since_clock = S->longest = 0;
  S->clock_started = false;
  S->killed = CLUA_OK;
  S->line = S->seen_line = 0;
  S->line_module = S->seen_module = -1;
  S->message[0] = 0;
  // None of these calls allocates: light C functions, a light userdata, and stack space that is always available.
  lua_settop(L, 0);
  lua_sethook(L, count_hook, LUA_MASKCOUNT, GRAIN); // restarts its count, so that the same run always costs the same
  lua_pushcfunction(L, note_line);
  lua_pushcfunction(L, body);
  lua_pushlightuserdata(L, request);
  int status = lua_pcall(L, 1, 0, 1);
  clua_status answer = CLUA_OK;
  if (S->killed != CLUA_OK) {
    explain_kill(S); // also after success: Lua ignores that its string table could not grow
    answer = S->killed;
  } else if (status == LUA_ERRMEM) {
    keep_message(S, "out of memory", 13);
    answer = CLUA_NO_MEMORY;
  } else if (status != LUA_OK) {
    answer = CLUA_ERROR;
    if (lua_type(L, -1) == LUA_TSTRING) {
      size_t length;
      const char *text = lua_tolstring(L, -1, &length);
      keep_message(S, text, length);
    } else {
      snprintf(S->message, sizeof S->message, "an error was raised with a %s as its message", luaL_typename(L, -1));
    }
  }
  lua_settop(L, 0);
  S->killed = CLUA_OK;
  S->clean = false;
  return answer;
}

static int collect(lua_State *L) {
  clua_state *S = state_of(L);
  // Lua halves its string table once per collection, so one collection is not enough to return to the state of a fresh
  // one.
  for (int round = 0; round < 12; round++) {
    uint64_t before = S->held;
    lua_gc(L, LUA_GCCOLLECT);
    if (S->held >= before) break;
  }
  return 0;
}

void collect_garbage(clua_state *S) {
  run_protected(S, collect, NULL, NULL);
  S->baseline = S->held;
  S->clean = true;
}

// Lua doubles its string table and its stack when they are full, but shrinks them by another rule. A state that never
// ran anything uses less memory than one that did, so a call near its memory limit would have to pay for the
// difference. Once both have grown far beyond the needs of the kept values, each collection brings them to the same
// size.
static int outgrow(lua_State *L) {
  luaL_checkstack(L, 1000, NULL);
  uint64_t strings = state_of(L)->held / 8; // at least four for each string: none takes less than 32 bytes
  lua_createtable(L, (int)strings, 0);
  for (uint64_t number = 1; number <= strings; number++) {
    lua_pushfstring(L, "outgrow %d", (int)number);
    lua_rawseti(L, -2, (lua_Integer)number);
  }
  return 0;
}

// Brings the state to where it would be if nothing had run except loading.
static void settle_state(clua_state *S) {
  if (!S->settled) run_protected(S, outgrow, NULL, NULL);
  S->settled = true;
  collect_garbage(S);
}

int raise(lua_State *L, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  luaL_where(L, 1);
  if (lua_tolstring(L, -1, NULL)[0] == 0) { // called by another C function: name the script's line nevertheless
    lua_pop(L, 1);
    int module;
    int line = line_at_work(L, &module);
    clua_state *S = state_of(L);
    lua_pushfstring(L, "%s:%d: ", module < 0 ? S->name : S->modules[module].file, line);
  }
  // not lua_pushstring: its cache depends on addresses, and so would the charged bytes
  lua_pushlstring(L, text, strlen(text));
  lua_concat(L, 2);
  return lua_error(L);
}

int raise_answer(lua_State *L, const clua_value *value, const char *otherwise) {
  if (value->bytes == NULL) return raise(L, "%s", otherwise);
  return raise(L, "%.*s", (int)(value->length < 400 ? value->length : 400), value->bytes);
}

// MARK: states

static int open_all(lua_State *L) {
  sandbox_open(L);
  return 0;
}

clua_state *clua_new(const clua_callbacks *callbacks) {
  clua_state *S = calloc(1, sizeof *S);
  if (S == NULL) return NULL;
  if (callbacks != NULL) S->callbacks = *callbacks;
  S->budget.bytes = UINT64_MAX;
  S->L = lua_newstate(allocate, S);
  if (S->L == NULL) {
    free(S);
    return NULL;
  }
  *(clua_state **)lua_getextraspace(S->L) = S;
  // Collect only between calls. The timing of a collection inside a call must not affect its result.
  lua_gc(S->L, LUA_GCSTOP);
  strcpy(S->name, "sandbox");
  if (run_protected(S, open_all, NULL, NULL) != CLUA_OK) {
    clua_free(S);
    return NULL;
  }
  collect_garbage(S);
  return S;
}

void clua_free(clua_state *S) {
  if (S == NULL) return;
  S->killed = CLUA_OK;
  lua_close(S->L); // there are no finalizers that could raise
  free(S->functions);
  free(S->facts);
  free(S->nodes);
  free(S->text);
  free(S->sides);
  for (int32_t i = 0; i < S->module_count; i++) {
    free(S->modules[i].name);
    free(S->modules[i].source);
  }
  free(S->modules);
  free(S);
}

// MARK: calls

typedef struct {
  int32_t function, facts;
  clua_value *result;
  bool keeps_table; // whether a table is kept as a tree; otherwise it is a CLUA_OTHER
} call_request;

void push_kept(lua_State *L, int32_t number) {
  clua_state *S = state_of(L);
  kept_function *function = &S->functions[number];
  S->longest = function->longest;
  if (function->restores > 0) put_back(L, function);
  lua_rawgeti(L, LUA_REGISTRYINDEX, function->ref);
}

static int call_body(lua_State *L) {
  call_request *request = lua_touserdata(L, 1);
  clua_state *S = state_of(L);
  push_kept(L, request->function);
  int arguments = 0;
  if (request->facts >= 0) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->facts[request->facts]);
    arguments = 1;
  }
  lua_call(L, arguments, 1);
  clua_value *result = request->result;
  memset(result, 0, sizeof *result);
  switch (lua_type(L, -1)) {
    case LUA_TNIL: result->kind = CLUA_NIL; return 0;
    case LUA_TBOOLEAN:
      result->kind = CLUA_BOOLEAN;
      result->boolean = lua_toboolean(L, -1);
      return 0;
    case LUA_TNUMBER:
      result->kind = lua_isinteger(L, -1) ? CLUA_INTEGER : CLUA_NUMBER;
      result->integer = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : 0;
      result->number = lua_tonumber(L, -1);
      return 0;
    case LUA_TSTRING: result->kind = CLUA_STRING; break;
    case LUA_TTABLE:
      // The tree is outside the budget, and stays: only a function that may return a table pays for one.
      result->kind = CLUA_OTHER;
      result->bytes = luaL_typename(L, -1);
      result->length = strlen(result->bytes);
      if (!request->keeps_table) return 0;
      S->node_count = S->text_count = 0;
      keep_result(L, S);
      result->kind = CLUA_TABLE;
      return 0;
    default: {
      tagged *value = to_tagged(L, -1);
      if (value != NULL && value->kind == CLUA_ALLOW) {
        result->kind = CLUA_ALLOW;
        return 0;
      }
      if (value != NULL && (value->kind == CLUA_DENY || value->kind == CLUA_REQUIRE_ALSO)) {
        result->kind = value->kind;
        lua_getiuservalue(L, -1, 1);
        break;
      }
      result->kind = CLUA_OTHER;
      result->bytes = value != NULL ? value->name : luaL_typename(L, -1);
      result->length = strlen(result->bytes);
      return 0;
    }
  }
  // Copied, because the value may be collected after the run. A longer result is not valid anyway.
  size_t length;
  const char *text = lua_tolstring(L, -1, &length);
  if (length >= sizeof S->message) length = sizeof S->message - 1;
  memcpy(S->message, text, length);
  S->message[length] = 0;
  result->bytes = S->message;
  result->length = length;
  return 0;
}

// Runs a body that calls a kept function.
static clua_status call_kept(clua_state *S, int32_t function, lua_CFunction body, void *request,
  const clua_budget *budget) {
  if (function < 0 || function >= S->function_count) {
    snprintf(S->message, sizeof S->message, "unknown function");
    return CLUA_ERROR;
  }
  memcpy(S->name, S->functions[function].name, sizeof S->name);
  if (S->held > S->baseline + GARBAGE_MAX) collect_garbage(S);
  bool was_settled = S->clean && S->settled;
  clua_status status = run_protected(S, body, request, budget);
  // Garbage of earlier calls may provide interned strings or a grown stack, which saves this call some bytes. If that
  // could decide whether it exceeds its budget, the call is repeated in a settled state, so the result is the same
  // everywhere. Functions are pure, so a second run changes nothing.
  if (!was_settled && (status == CLUA_KILLED_MEMORY || S->bytes + 2 * GARBAGE_MAX > S->budget.bytes)) {
    settle_state(S);
    status = run_protected(S, body, request, budget);
  }
  return status;
}

// Runs a body that keeps the function's result as a tree.
static clua_status call_of_result(clua_state *S, int32_t function, lua_CFunction body, void *request,
  const clua_budget *budget) {
  S->keeps_no_function = true;
  clua_status status = call_kept(S, function, body, request, budget);
  S->keeps_no_function = false;
  if (status != CLUA_OK) S->node_count = 0;
  return status;
}

static clua_status call_with_facts(clua_state *S, call_request *request, const clua_budget *budget) {
  if (request->facts >= S->facts_count) {
    snprintf(S->message, sizeof S->message, "unknown facts");
    return CLUA_ERROR;
  }
  return call_of_result(S, request->function, call_body, request, budget);
}

clua_status clua_call(clua_state *S, int32_t function, int32_t facts, const clua_budget *budget, clua_value *result) {
  call_request request = {function, facts, result, false};
  return call_with_facts(S, &request, budget);
}

clua_status clua_call_for_table(clua_state *S, int32_t function, int32_t facts, const clua_budget *budget,
  clua_value *result) {
  call_request request = {function, facts, result, true};
  return call_with_facts(S, &request, budget);
}

// More than five parameters: see CLua.h.
clua_status clua_apply(clua_state *S, int32_t function, const clua_node *nodes, size_t count, const char *text,
  const clua_budget *budget) {
  apply_request request = {function, nodes, count, text};
  return call_of_result(S, function, apply_body, &request, budget);
}

const char *clua_message(const clua_state *S) { return S->message; }
int32_t clua_line(const clua_state *S) { return S->line; }
int32_t clua_line_module(const clua_state *S) { return S->line_module; }
uint64_t clua_steps_used(const clua_state *S) { return S->steps; }
uint64_t clua_bytes_used(const clua_state *S) { return S->bytes; }
uint64_t clua_bytes_held(const clua_state *S) { return S->held; }
