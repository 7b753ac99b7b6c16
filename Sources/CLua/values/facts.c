// Facts: read-only values that are fetched from Swift one by one when a script reads them.
#include <stdio.h>

#include "../internal.h"

static const char facts_key = 0;

// User value 1 of a group: a table from names to slots (integers) or nested groups.
typedef struct {
  int32_t slot;     // the slot of a set; -1: a group
  int32_t presence; // the slot that says whether a group is there; -1: it always is
  char path[64];
} facts;

bool is_facts(lua_State *L, int index) {
  if (lua_type(L, index) != LUA_TUSERDATA || !lua_getmetatable(L, index)) return false;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &facts_key);
  bool same = lua_rawequal(L, -1, -2);
  lua_pop(L, 2);
  return same;
}

// Asks Swift for a value and pushes it. The Swift frame has returned before anything here can raise.
static int push_fact(lua_State *L, int32_t slot, const char *key, size_t key_length, int64_t index) {
  clua_state *S = state_of(L);
  clua_value value;
  memset(&value, 0, sizeof value);
  int refused = S->callbacks.fact == NULL ? 1 : S->callbacks.fact(S->callbacks.context, slot, key, key_length, index,
    &value);
  charge(L, 2 + value.length / 16);
  if (refused) return raise_answer(L, &value, "this fact cannot be read");
  switch (value.kind) {
    case CLUA_BOOLEAN: lua_pushboolean(L, value.boolean); break;
    case CLUA_INTEGER: lua_pushinteger(L, value.integer); break;
    case CLUA_NUMBER: lua_pushnumber(L, value.number); break;
    case CLUA_STRING: lua_pushlstring(L, value.bytes != NULL ? value.bytes : "",
      value.bytes != NULL ? value.length : 0); break;
    default: lua_pushnil(L); break;
  }
  return 1;
}

// Whether the facts on top of the stack are there.
static bool is_there(lua_State *L) {
  facts *f = lua_touserdata(L, -1);
  // Without callbacks, only the names of facts are asked for.
  if (f->presence < 0 || state_of(L)->callbacks.fact == NULL) return true;
  push_fact(L, f->presence, NULL, 0, -1);
  bool there = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return there;
}

static int facts_index(lua_State *L) {
  facts *f = lua_touserdata(L, 1); // only a facts value has this metatable
  if (f->slot >= 0) {
    if (lua_type(L, 2) != LUA_TSTRING) return lua_pushnil(L), 1;
    size_t length;
    const char *key = lua_tolstring(L, 2, &length);
    return push_fact(L, f->slot, key, length, -1);
  }
  lua_getiuservalue(L, 1, 1);
  lua_pushvalue(L, 2);
  switch (lua_rawget(L, 3)) {
    case LUA_TNUMBER: return push_fact(L, (int32_t)lua_tointeger(L, 4), NULL, 0, -1);
    case LUA_TUSERDATA:
      if (!is_there(L)) lua_pushnil(L);
      return 1;
    default: {
      size_t length;
      const char *name = push_text(L, 2, &length);
      push_suggestion(L, 3, name, length);
      if (lua_rawlen(L, -1) == 0) push_names(L, 3);
      return raise(L, "unknown fact `%s.%.60s`%s", f->path, name, lua_tostring(L, -1));
    }
  }
}

static int facts_refuse(lua_State *L) { return raise(L, "facts are read-only"); }

static int facts_length(lua_State *L) { return raise(L, "facts have no length; use pairs"); }

void push_fact_keys(lua_State *L, int index) {
  facts *f = lua_touserdata(L, index);
  if (f->slot < 0) {
    lua_newtable(L);
    int there = lua_gettop(L);
    lua_getiuservalue(L, index, 1);
    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
      if (lua_type(L, -1) == LUA_TUSERDATA && !is_there(L)) continue;
      lua_pushvalue(L, -2);
      lua_pushboolean(L, true);
      lua_rawset(L, there);
    }
    lua_settop(L, there);
    push_sorted_keys(L, -1);
    lua_remove(L, -2);
    return;
  }
  lua_newtable(L);
  for (int64_t i = 0; i < 1000; i++) {
    push_fact(L, f->slot, NULL, 0, i);
    if (lua_type(L, -1) != LUA_TSTRING) {
      lua_pop(L, 1);
      return;
    }
    lua_rawseti(L, -2, i + 1);
  }
}

void facts_open(lua_State *L) {
  lua_createtable(L, 0, 3);
  lua_pushcfunction(L, facts_index);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, facts_refuse);
  lua_setfield(L, -2, "__newindex");
  lua_pushcfunction(L, facts_length);
  lua_setfield(L, -2, "__len");
  lua_rawsetp(L, LUA_REGISTRYINDEX, &facts_key);
}

static void push_group(lua_State *L, const char *path, int32_t slot) {
  facts *f = lua_newuserdatauv(L, sizeof *f, 1);
  f->slot = slot;
  f->presence = -1;
  snprintf(f->path, sizeof f->path, "%s", path);
  lua_newtable(L);
  lua_setiuservalue(L, -2, 1);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &facts_key);
  lua_setmetatable(L, -2);
}

static int new_body(lua_State *L) {
  int *ref = lua_touserdata(L, 1);
  push_group(L, "f", -1);
  *ref = luaL_ref(L, LUA_REGISTRYINDEX);
  return 0;
}

int32_t clua_facts_new(clua_state *S) {
  int *grown = realloc(S->facts, sizeof *grown * ((size_t)S->facts_count + 1));
  if (grown == NULL) return -1;
  S->facts = grown;
  S->settled = false;
  if (run_protected(S, new_body, &S->facts[S->facts_count], NULL) != CLUA_OK) return -1;
  return S->facts_count++;
}

typedef struct {
  int ref;
  const char *path;
  int32_t slot;
  clua_fact_kind kind;
} add_request;

static int add_body(lua_State *L) {
  add_request *request = lua_touserdata(L, 1);
  lua_rawgeti(L, LUA_REGISTRYINDEX, request->ref);
  const char *part = request->path;
  for (const char *dot; (dot = strchr(part, '.')) != NULL; part = dot + 1) {
    facts *group = lua_touserdata(L, -1);
    lua_getiuservalue(L, -1, 1);
    lua_pushlstring(L, part, (size_t)(dot - part));
    if (lua_rawget(L, -2) != LUA_TUSERDATA) {
      lua_pop(L, 1);
      char path[64];
      snprintf(path, sizeof path, "%s.%.*s", group->path, (int)(dot - part), part);
      push_group(L, path, -1);
      lua_pushlstring(L, part, (size_t)(dot - part));
      lua_pushvalue(L, -2);
      lua_rawset(L, -4);
    }
    lua_replace(L, -3);
    lua_pop(L, 1);
  }
  lua_getiuservalue(L, -1, 1);
  lua_pushstring(L, part);
  switch (request->kind) {
    case CLUA_FACT_VALUE: lua_pushinteger(L, request->slot); break;
    case CLUA_FACT_SET: push_group(L, part, request->slot); break;
    case CLUA_FACT_PRESENCE:
      if (lua_rawget(L, -2) == LUA_TUSERDATA) ((facts *)lua_touserdata(L, -1))->presence = request->slot;
      return 0;
  }
  lua_rawset(L, -3);
  return 0;
}

clua_status clua_facts_add(clua_state *S, int32_t facts_number, const char *path, int32_t slot,
  clua_fact_kind kind) {
  if (facts_number < 0 || facts_number >= S->facts_count) return CLUA_ERROR;
  add_request request = {S->facts[facts_number], path, slot, kind};
  S->settled = false;
  return run_protected(S, add_body, &request, NULL);
}
