// The environment of scripts: an allow-list. Globals and libraries are read-only views, and an unknown name is an
// error.
#include <stdio.h>

#include "../internal.h"

// MARK: read-only tables

static int refuse_write(lua_State *L) { return raise(L,
  "this is read-only: a call cannot store anything for the next one"); }

static int refuse_global(lua_State *L) {
  size_t length;
  const char *name = push_text(L, 2, &length);
  return raise(L, "globals are read-only: write `local %.60s = …`", name);
}

static int length_behind(lua_State *L) {
  look_through(L, 1);
  lua_pushinteger(L, (lua_Integer)lua_rawlen(L, 1));
  return 1;
}

// The metatable of a view. [1] is the table behind it, which our own library can access.
static void push_view_metatable(lua_State *L, int behind, lua_CFunction write) {
  behind = lua_absindex(L, behind);
  lua_createtable(L, 1, 3);
  lua_pushvalue(L, behind);
  lua_rawseti(L, -2, 1);
  lua_pushvalue(L, behind);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, write);
  lua_setfield(L, -2, "__newindex");
  lua_pushcfunction(L, length_behind);
  lua_setfield(L, -2, "__len");
}

void look_through(lua_State *L, int index) {
  // scripts cannot give a table a metatable
  if (lua_type(L, index) != LUA_TTABLE || !lua_getmetatable(L, index)) return;
  lua_rawgeti(L, -1, 1);
  lua_remove(L, -2);
  if (lua_istable(L, -1))
    lua_replace(L, index < 0 ? index - 1 : index);
  else
    lua_pop(L, 1);
}

void freeze_table(lua_State *L, int index) {
  index = lua_absindex(L, index);
  lua_newtable(L); // behind
  lua_pushnil(L);
  while (lua_next(L, index)) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, -4); // behind[key] = value
    lua_pushvalue(L, -1);
    lua_pushnil(L);
    lua_rawset(L, index); // removing the present key during a traversal is allowed
  }
  push_view_metatable(L, -1, refuse_write);
  lua_setmetatable(L, index);
  lua_pop(L, 1);
}

// MARK: unknown names

// The registry holds a table of hints under this address, by name.
static const char hints_key = 0;

// Upvalues: the library's name ("" for globals) and its table.
static int refuse_unknown(lua_State *L) {
  size_t length;
  const char *name = push_text(L, 2, &length);
  const char *library = lua_tostring(L, lua_upvalueindex(1));
  lua_rawgetp(L, LUA_REGISTRYINDEX, &hints_key);
  lua_pushvalue(L, -2);
  if (lua_rawget(L, -2) == LUA_TSTRING) return raise(L, "`%s` is not offered: %s", name, lua_tostring(L, -1));
  lua_pop(L, 2);
  push_suggestion(L, lua_upvalueindex(2), name, length);
  const char *suggestion = lua_tostring(L, -1);
  if (library[0] != 0) return raise(L, "`%s.%.60s` is not offered%s", library, name, suggestion);
  return raise(L, "unknown name `%.60s`%s", name, suggestion);
}

static void seal(lua_State *L, const char *name, lua_CFunction write) {
  lua_createtable(L, 0, 1); // of the library itself
  lua_pushstring(L, name);
  lua_pushvalue(L, -3);
  lua_pushcclosure(L, refuse_unknown, 2);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
  lua_newtable(L); // the view
  push_view_metatable(L, -2, write);
  lua_setmetatable(L, -2);
  lua_remove(L, -2);
}

void seal_library(lua_State *L, const char *name) { seal(L, name, refuse_write); }

void add_functions(lua_State *L, const luaL_Reg *functions) {
  for (; functions->name != NULL; functions++) {
    lua_pushcfunction(L, functions->func);
    lua_setfield(L, -2, functions->name);
  }
}

// MARK: text without addresses

const char *push_text(lua_State *L, int index, size_t *length) {
  tagged *value;
  switch (lua_type(L, index)) {
    case LUA_TNIL: lua_pushliteral(L, "nil"); break;
    case LUA_TBOOLEAN: lua_pushstring(L, lua_toboolean(L, index) ? "true" : "false"); break;
    case LUA_TSTRING: lua_pushvalue(L, index); break;
    case LUA_TNUMBER:
      if (!lua_isinteger(L, index) && lua_tonumber(L, index) != lua_tonumber(L, index))
        lua_pushliteral(L, "nan"); // its sign differs between machines
      else
        lua_pushvalue(L, index);
      break;
    case LUA_TUSERDATA:
      value = to_tagged(L, index);
      lua_pushstring(L, value != NULL ? value->name : is_facts(L, index) ? "table" : "userdata");
      break;
    default: lua_pushstring(L, luaL_typename(L, index)); break;
  }
  return lua_tolstring(L, -1, length);
}

const char *check_text(lua_State *L, int argument, size_t *length) {
  int type = lua_type(L, argument);
  if (type != LUA_TSTRING && type != LUA_TNUMBER)
    luaL_error(L, "argument %d must be a string, not %s", argument, luaL_typename(L, argument));
  return lua_tolstring(L, argument, length);
}

// MARK: base functions

static int base_assert(lua_State *L) {
  luaL_checkany(L, 1);
  if (lua_toboolean(L, 1)) return lua_gettop(L);
  if (lua_isnoneornil(L, 2)) return raise(L, "assertion failed");
  lua_settop(L, 2);
  return lua_error(L);
}

static int base_error(lua_State *L) {
  int level = (int)luaL_optinteger(L, 2, 1);
  lua_settop(L, 1);
  if (lua_type(L, 1) == LUA_TSTRING && level > 0) {
    luaL_where(L, level);
    lua_pushvalue(L, 1);
    lua_concat(L, 2);
  }
  return lua_error(L);
}

// Catches errors of scripts, but never a kill.
static int base_pcall(lua_State *L) {
  luaL_checkany(L, 1);
  charge(L, 20);
  lua_pushboolean(L, 1);
  lua_insert(L, 1);
  int status = lua_pcall(L, lua_gettop(L) - 2, LUA_MULTRET, 0);
  clua_status killed = state_of(L)->killed;
  if (killed != CLUA_OK) kill_run(L, killed);
  if (status == LUA_OK) return lua_gettop(L);
  lua_pushboolean(L, 0);
  lua_insert(L, -2);
  return 2;
}

static int base_select(lua_State *L) {
  int count = lua_gettop(L);
  if (lua_type(L, 1) == LUA_TSTRING && strcmp(lua_tostring(L, 1), "#") == 0) {
    lua_pushinteger(L, count - 1);
    return 1;
  }
  lua_Integer from = luaL_checkinteger(L, 1);
  if (from < 0) from = count + from;
  if (from < 1) return raise(L, "select: the index is out of range");
  return from >= count ? 0 : count - (int)from;
}

static int base_tonumber(lua_State *L) {
  size_t length;
  if (lua_isnoneornil(L, 2)) {
    luaL_checkany(L, 1);
    if (lua_type(L, 1) == LUA_TNUMBER) {
      lua_settop(L, 1);
      return 1;
    }
    if (lua_type(L, 1) == LUA_TSTRING) {
      const char *text = lua_tolstring(L, 1, &length);
      charge(L, 1 + length / 8);
      if (lua_stringtonumber(L, text) == length + 1) return 1;
    }
    lua_pushnil(L);
    return 1;
  }
  lua_Integer base = luaL_checkinteger(L, 2);
  if (base < 2 || base > 36) return raise(L, "tonumber: the base must be 2 to 36");
  luaL_checktype(L, 1, LUA_TSTRING);
  const char *text = lua_tolstring(L, 1, &length);
  charge(L, 1 + length / 8);
  const char *end = text + length;
  while (text < end && (*text == ' ' || (*text >= '\t' && *text <= '\r'))) text++;
  while (end > text && (end[-1] == ' ' || (end[-1] >= '\t' && end[-1] <= '\r'))) end--;
  bool negative = text < end && *text == '-';
  if (negative) text++;
  lua_Unsigned value = 0;
  bool any = false;
  for (; text < end; text++, any = true) {
    int digit = *text >= '0' && *text <= '9' ? *text - '0' : *text >= 'a' && *text <= 'z' ? *text - 'a' + 10
      : *text >= 'A' && *text <= 'Z' ? *text - 'A' + 10 : 99;
    if (digit >= base) break;
    value = value * (lua_Unsigned)base + (lua_Unsigned)digit;
  }
  if (!any || text != end)
    lua_pushnil(L);
  else
    lua_pushinteger(L, (lua_Integer)(negative ? 0u - value : value));
  return 1;
}

static int base_tostring(lua_State *L) {
  size_t length;
  luaL_checkany(L, 1);
  push_text(L, 1, &length);
  if (lua_type(L, -1) == LUA_TNUMBER) lua_tolstring(L, -1, NULL);
  return 1;
}

static int base_type(lua_State *L) {
  luaL_checkany(L, 1);
  lua_pushstring(L, is_facts(L, 1) ? "table" : luaL_typename(L, 1));
  return 1;
}

static int ipairs_step(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_Integer index = luaL_checkinteger(L, 2);
  if (index == LUA_MAXINTEGER) return 0;
  lua_pushinteger(L, index + 1);
  return lua_geti(L, 1, index + 1) == LUA_TNIL ? 1 : 2;
}

static int base_ipairs(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_pushcfunction(L, ipairs_step);
  lua_pushvalue(L, 1);
  lua_pushinteger(L, 0);
  return 3;
}

static const luaL_Reg base[] = {
  {"assert", base_assert}, {"error", base_error}, {"ipairs", base_ipairs}, {"pcall", base_pcall},
  {"select", base_select}, {"tonumber", base_tonumber}, {"tostring", base_tostring}, {"type", base_type},
  {NULL, NULL},
};

// MARK: the environment

// _moongate_at(number, table): records the number of the table's constructor in the source.
int mark_key;

static int mark_table(lua_State *L) {
  luaL_checkinteger(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &mark_key);
  lua_pushvalue(L, 2);
  lua_pushvalue(L, 1);
  lua_rawset(L, -3);
  lua_settop(L, 2);
  return 1;
}

// An upper bound on the branches of a folder.
#define SIDES_MAX (1 << 20)

// _moongate_took(number, value): records which side of a branch the value leads to, and returns the value.
static int note_side(lua_State *L) {
  clua_state *S = state_of(L);
  lua_Integer number = luaL_checkinteger(L, 1);
  lua_settop(L, 2);
  if (number < 0 || number >= SIDES_MAX) return 1;
  if ((size_t)number >= S->side_count) {
    size_t count = (size_t)number + 64;
    uint8_t *grown = realloc(S->sides, count);
    if (grown == NULL) return luaL_error(L, "out of memory");
    memset(grown + S->side_count, 0, count - S->side_count);
    S->sides = grown;
    S->side_count = count;
  }
  S->sides[number] |= lua_toboolean(L, 2) ? 1 : 2;
  return 1;
}

static void push_environment(lua_State *L, bool marked) {
  lua_newtable(L);
  add_functions(L, base);
  ordered_pairs_add(L);
  helpers_add(L);
  constructors_add(L);
  include_add(L);
  static const struct {
    const char *name;
    void (*open)(lua_State *);
  } libraries[] = {{"string", strings_open}, {"table", tables_open}, {"math", numbers_open}};
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
    libraries[i].open(L);
    seal_library(L, libraries[i].name);
    lua_setfield(L, -2, libraries[i].name);
  }
  if (marked) {
    lua_pushcfunction(L, mark_table);
    lua_setfield(L, -2, "_moongate_at");
    lua_pushcfunction(L, note_side);
    lua_setfield(L, -2, "_moongate_took");
  }
  seal(L, "", refuse_global);
}

void sandbox_open(lua_State *L) {
  clua_state *S = state_of(L);
  lua_newtable(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &mark_key);
  lua_newtable(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &hints_key);
  facts_open(L);
  push_environment(L, false);
  S->environment = luaL_ref(L, LUA_REGISTRYINDEX);
  push_environment(L, true);
  S->marked_environment = luaL_ref(L, LUA_REGISTRYINDEX);
  // ("x"):upper() goes to the same read-only library.
  lua_pushliteral(L, "");
  lua_createtable(L, 0, 1);
  strings_open(L);
  seal_library(L, "string");
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
  lua_pop(L, 1);
}

typedef struct {
  const clua_hint *list;
  size_t count;
} addition;

// Argument 1: an `addition`, as a light pointer.
static int add_hints(lua_State *L) {
  const addition *added = lua_touserdata(L, 1);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &hints_key);
  for (size_t i = 0; i < added->count; i++) {
    const clua_hint *one = &added->list[i];
    lua_pushlstring(L, one->name, strlen(one->name));
    lua_pushlstring(L, one->hint, strlen(one->hint));
    lua_rawset(L, -3);
  }
  return 0;
}

clua_status clua_hints_add(clua_state *S, const clua_hint *list, size_t count) {
  addition added = {list, count};
  clua_status status = run_protected(S, add_hints, &added, NULL);
  S->settled = false;
  return status;
}
