// Modules: chunks that scripts include by name.
#include <stdio.h>

#include "../internal.h"

// The registry holds the table of the values of modules under this address: true while a module runs.
static const char values_key = 0;

void modules_reset(lua_State *L) {
  lua_newtable(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &values_key);
}

static const module *find_module(lua_State *L, const char *name) {
  const clua_state *S = state_of(L);
  for (int32_t i = 0; i < S->module_count; i++)
    if (strcmp(S->modules[i].name, name) == 0) return &S->modules[i];
  return NULL;
}

static int unknown_module(lua_State *L, const char *name) {
  const clua_state *S = state_of(L);
  lua_newtable(L);
  for (int32_t i = 0; i < S->module_count; i++) {
    lua_pushlstring(L, S->modules[i].name, strlen(S->modules[i].name));
    lua_pushboolean(L, 1);
    lua_rawset(L, -3);
  }
  push_suggestion(L, -1, name, strlen(name));
  const char *suggestion = lua_tostring(L, -1);
  return raise(L, "include finds no file of the name `%.60s`%s", name, suggestion);
}

static int include(lua_State *L) {
  if (lua_type(L, 1) != LUA_TSTRING) return raise(L, "include takes a name, as in include \"night\"");
  lua_settop(L, 1);
  size_t length;
  const char *name = lua_tolstring(L, 1, &length);
  clua_state *S = state_of(L);
  if (!S->loading) return raise(L, "include works only while a file is loaded: call it outside of functions");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &values_key);
  lua_pushvalue(L, 1);
  int type = lua_rawget(L, 2);
  if (type == LUA_TBOOLEAN) return raise(L, "`%.60s` includes itself, or has failed before", name);
  if (type != LUA_TNIL) return 1;
  // Attack: a name with a zero byte in it, which runs a module once more.
  const module *module = strlen(name) == length ? find_module(L, name) : NULL;
  if (module == NULL) return unknown_module(L, name);
  lua_settop(L, 2);
  lua_pushvalue(L, 1);
  lua_pushboolean(L, 1);
  lua_rawset(L, 2);
  char chunk[sizeof module->file + 1];
  chunk[0] = '@';
  memcpy(chunk + 1, module->file, sizeof module->file);
  charge(L, module->length / 8);
  // "t": text only, as in load.c.
  if (luaL_loadbufferx(L, module->source, module->length, chunk, "t") != LUA_OK) return lua_error(L);
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->environment);
  if (lua_setupvalue(L, -2, 1) == NULL) lua_pop(L, 1);
  lua_call(L, 0, 1);
  type = lua_type(L, -1);
  bool isFunction = type == LUA_TFUNCTION && !lua_iscfunction(L, -1);
  if (type != LUA_TTABLE && !isFunction) {
    // Not `raise`, which names the line that includes.
    lua_pushfstring(L, "%s:1: %s must return a table or a function, not %s", module->file, module->file,
      luaL_typename(L, -1));
    return lua_error(L);
  }
  lua_pushvalue(L, 1);
  lua_pushvalue(L, -2);
  lua_rawset(L, 2);
  return 1;
}

static const luaL_Reg functions[] = {{"include", include}, {NULL, NULL}};

void include_add(lua_State *L) { add_functions(L, functions); }

int32_t clua_module_add(clua_state *S, const char *name, const char *file, const char *source, size_t length) {
  module *grown = realloc(S->modules, sizeof *grown * (size_t)(S->module_count + 1));
  if (grown == NULL) return -1;
  S->modules = grown;
  module *added = &grown[S->module_count];
  memset(added, 0, sizeof *added);
  size_t count = strlen(file);
  snprintf(added->file, sizeof added->file, "%s", count > NAME_MAX_LENGTH ? file + count - NAME_MAX_LENGTH : file);
  added->name = strdup(name);
  added->source = malloc(length > 0 ? length : 1);
  if (added->name == NULL || added->source == NULL) {
    free(added->name);
    free(added->source);
    return -1;
  }
  memcpy(added->source, source, length);
  added->length = length;
  return S->module_count++;
}
