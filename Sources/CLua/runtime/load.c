// Loads a chunk into a tree.
#include <stdio.h>

#include "../internal.h"

typedef struct {
  const char *source;
  size_t length;
  bool marks, run;
} load_request;

static int load_body(lua_State *L) {
  load_request *request = lua_touserdata(L, 1);
  clua_state *S = state_of(L);
  char name[sizeof S->name + 1];
  snprintf(name, sizeof name, "@%s", S->name);
  charge(L, request->length / 8);
  // "t": text only. Lua does not verify precompiled code, and forged code can take over the process.
  if (luaL_loadbufferx(L, request->source, request->length, name, "t") != LUA_OK) return lua_error(L);
  if (!request->run) return 0;
  modules_reset(L);
  lua_rawgeti(L, LUA_REGISTRYINDEX, request->marks ? S->marked_environment : S->environment);
  if (lua_setupvalue(L, -2, 1) == NULL) lua_pop(L, 1); // a chunk's only upvalue is _ENV
  lua_call(L, 0, 1);
  keep_result(L, S);
  return 0;
}

static clua_status load(clua_state *S, const char *name, load_request *request, const clua_budget *budget) {
  size_t length = strlen(name);
  snprintf(S->name, sizeof S->name, "%s", length > NAME_MAX_LENGTH ? name + length - NAME_MAX_LENGTH : name);
  S->node_count = S->text_count = 0;
  int32_t functions = S->function_count;
  S->loading = request->run;
  clua_status status = run_protected(S, load_body, request, budget);
  S->loading = false;
  if (status != CLUA_OK) {
    S->node_count = 0;
    S->function_count = functions;
  }
  uint64_t steps = S->steps, bytes = S->bytes;
  int line = S->line, line_module = S->line_module;
  char message[sizeof S->message];
  memcpy(message, S->message, sizeof message);
  collect_garbage(S);
  S->settled = false;
  S->steps = steps, S->bytes = bytes, S->line = line, S->line_module = line_module;
  memcpy(S->message, message, sizeof message);
  return status;
}

// More than five parameters: see CLua.h.
clua_status clua_load(clua_state *S, const char *name, const char *source, size_t length, const clua_budget *budget,
  bool marks) {
  load_request request = {source, length, marks, true};
  return load(S, name, &request, budget);
}

clua_status clua_parse(clua_state *S, const char *name, const char *source, size_t length, const clua_budget *budget) {
  load_request request = {source, length, false, false};
  return load(S, name, &request, budget);
}

const clua_node *clua_tree_nodes(const clua_state *S) { return S->nodes; }
size_t clua_tree_count(const clua_state *S) { return S->node_count; }
const char *clua_tree_text(const clua_state *S) { return S->text; }

const uint8_t *clua_sides_taken(const clua_state *S, size_t *count) {
  *count = S->side_count;
  return S->sides;
}
