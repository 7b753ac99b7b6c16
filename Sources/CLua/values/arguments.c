// Calls a kept function with a tree of plain values, and keeps its result as a tree.
#include "../internal.h"

// Pushes the value of the node at `at`. Returns the number of the node after it and its children.
static size_t push_tree(lua_State *L, const apply_request *request, size_t at, int depth) {
  if (at >= request->count) raise(L, "the tree of the argument is incomplete");
  if (depth > DEPTH_MAX) raise(L, "tables are nested more than %d deep", DEPTH_MAX);
  luaL_checkstack(L, 4, NULL);
  const clua_node *node = &request->nodes[at++];
  charge(L, 1 + node->text_length / 64);
  switch (node->kind) {
    case CLUA_BOOLEAN: lua_pushboolean(L, node->boolean); return at;
    case CLUA_INTEGER: lua_pushinteger(L, node->integer); return at;
    case CLUA_NUMBER: lua_pushnumber(L, node->number); return at;
    case CLUA_STRING: lua_pushlstring(L, request->text + node->text_offset, node->text_length); return at;
    case CLUA_TABLE: break;
    default: lua_pushnil(L); return at;
  }
  lua_newtable(L);
  for (int32_t i = 0; i < node->children; i++) {
    if (at >= request->count) raise(L, "the tree of the argument is incomplete");
    const clua_node *child = &request->nodes[at];
    if (child->key_kind == CLUA_STRING) {
      charge(L, 1 + child->key_length / 64);
      lua_pushlstring(L, request->text + child->key_offset, child->key_length);
    } else {
      lua_pushinteger(L, child->key_integer);
    }
    at = push_tree(L, request, at, depth + 1);
    lua_rawset(L, -3);
  }
  return at;
}

int apply_body(lua_State *L) {
  apply_request *request = lua_touserdata(L, 1);
  clua_state *S = state_of(L);
  S->node_count = S->text_count = 0;
  push_kept(L, request->function);
  push_tree(L, request, 0, 0);
  lua_call(L, 1, 1);
  keep_result(L, S);
  return 0;
}
