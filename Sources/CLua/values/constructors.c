// The constructors that Swift registers, and decisions. Each makes an opaque value that scripts can neither
// change nor forge. Swift interprets it when it reads the tree.
#include "../internal.h"

static const char tagged_key = 0;

tagged *to_tagged(lua_State *L, int index) {
  if (lua_type(L, index) != LUA_TUSERDATA || !lua_getmetatable(L, index)) return NULL;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &tagged_key);
  bool same = lua_rawequal(L, -1, -2);
  lua_pop(L, 2);
  return same ? lua_touserdata(L, index) : NULL;
}

// Makes a value from the topmost `values` values and pops them.
static int make(lua_State *L, clua_kind kind, const char *name, int values) {
  tagged *value = lua_newuserdatauv(L, sizeof *value, values);
  value->kind = kind;
  value->name = name;
  value->values = values;
  value->line = 0;
  value->has_title = false;
  lua_insert(L, -1 - values);
  for (int i = values; i >= 1; i--) lua_setiuservalue(L, -1 - i, i);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &tagged_key);
  lua_setmetatable(L, -2);
  return 1;
}

static int construct(lua_State *L, const char *name, int values) {
  make(L, CLUA_TAGGED, name, values);
  to_tagged(L, -1)->line = chunk_line_at_work(L);
  return 1;
}

// MARK: decisions

static const char *check_reason(lua_State *L, const char *of) {
  if (lua_type(L, 1) != LUA_TSTRING) raise(L, "%s takes a string, as in %s \"…\"", of, of);
  lua_settop(L, 1);
  return lua_tostring(L, 1);
}

static int decide_deny(lua_State *L) {
  check_reason(L, "deny");
  return make(L, CLUA_DENY, "deny", 1);
}

static int decide_require_also(lua_State *L) {
  check_reason(L, "require_also");
  return make(L, CLUA_REQUIRE_ALSO, "require_also", 1);
}

// MARK: constructors

// Upvalue 1: the name, as a light pointer to text that lives as long as the environment.
static int take_table(lua_State *L) {
  const char *name = lua_touserdata(L, lua_upvalueindex(1));
  if (lua_type(L, 1) != LUA_TTABLE) return raise(L, "%s takes a table, as in %s { … }", name, name);
  lua_settop(L, 1);
  return construct(L, name, 1);
}

static int take_text(lua_State *L) {
  const char *name = lua_touserdata(L, lua_upvalueindex(1));
  if (lua_type(L, 1) != LUA_TSTRING) return raise(L, "%s takes a string, as in %s \"…\"", name, name);
  lua_settop(L, 1);
  return construct(L, name, 1);
}

static int take_nothing(lua_State *L) {
  const char *name = lua_touserdata(L, lua_upvalueindex(1));
  if (!lua_isnoneornil(L, 1)) return raise(L, "%s takes nothing, as in %s()", name, name);
  return construct(L, name, 0);
}

static int take_table_or_nothing(lua_State *L) {
  const char *name = lua_touserdata(L, lua_upvalueindex(1));
  if (!lua_isnoneornil(L, 1)) return take_table(L);
  return construct(L, name, 0);
}

static int take_text_or_table(lua_State *L) {
  const char *name = lua_touserdata(L, lua_upvalueindex(1));
  if (lua_type(L, 1) != LUA_TSTRING && lua_type(L, 1) != LUA_TTABLE) return raise(L,
    "%s takes a string or a table, as in %s \"…\"", name, name);
  lua_settop(L, 1);
  return construct(L, name, 1);
}

// A name may stand alone (`name "title"`) or be followed by a table; see take_body.
static int take_title(lua_State *L) {
  const char *name = lua_touserdata(L, lua_upvalueindex(1));
  if (lua_type(L, 1) != LUA_TSTRING) return raise(L, "%s takes a name first, as in %s \"…\" { … }", name, name);
  lua_settop(L, 1);
  construct(L, name, 1);
  to_tagged(L, -1)->has_title = true;
  return 1;
}

// `name "title"` is called with its table. This makes a new value: values that a script holds never change.
static int take_body(lua_State *L) {
  tagged *title = to_tagged(L, 1);
  if (title == NULL || !title->has_title) return raise(L, "this value cannot be called");
  const char *name = title->name;
  if (lua_type(L, 2) != LUA_TTABLE) return raise(L, "%s takes a table after its name, as in %s \"…\" { … }", name,
    name);
  lua_settop(L, 2);
  lua_getiuservalue(L, 1, 1);
  lua_insert(L, 2);
  return construct(L, name, 2);
}

static int take_table_or_title(lua_State *L) {
  const char *name = lua_touserdata(L, lua_upvalueindex(1));
  if (lua_type(L, 1) == LUA_TTABLE) return take_table(L);
  if (lua_type(L, 1) == LUA_TSTRING) return take_title(L);
  return raise(L, "%s takes a table, as in %s { … }, or a name first, as in %s \"…\" { … }", name, name, name);
}

static int take_bounds_and_function(lua_State *L) {
  const char *name = lua_touserdata(L, lua_upvalueindex(1));
  if (lua_gettop(L) != 3 || lua_type(L, 3) != LUA_TFUNCTION) return raise(L,
    "%s takes the lowest value, the highest, and a function", name);
  return construct(L, name, 3);
}

static const lua_CFunction forms[] = {
  [CLUA_TAKES_TABLE] = take_table,
  [CLUA_TAKES_TEXT] = take_text,
  [CLUA_TAKES_TEXT_OR_TABLE] = take_text_or_table,
  [CLUA_TAKES_NOTHING] = take_nothing,
  [CLUA_TAKES_TABLE_OR_NOTHING] = take_table_or_nothing,
  [CLUA_TAKES_NAME] = take_title,
  [CLUA_TAKES_TABLE_OR_NAME] = take_table_or_title,
  [CLUA_TAKES_BOUNDS_AND_FUNCTION] = take_bounds_and_function,
};

void constructors_add(lua_State *L) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &tagged_key) == LUA_TNIL) {
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, take_body);
    lua_setfield(L, -2, "__call");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &tagged_key);
  }
  lua_pop(L, 1);
  // Decisions are values of the language and not constructors: `clua_call` returns them as kinds of their own.
  make(L, CLUA_ALLOW, "allow", 0);
  lua_setfield(L, -2, "allow");
  lua_pushcfunction(L, decide_deny);
  lua_setfield(L, -2, "deny");
  lua_pushcfunction(L, decide_require_also);
  lua_setfield(L, -2, "require_also");
}

typedef struct {
  const clua_constructor *list;
  size_t count;
} addition;

// Argument 1: an `addition`, as a light pointer.
static int add_list(lua_State *L) {
  const addition *added = lua_touserdata(L, 1);
  const clua_state *S = state_of(L);
  const int environments[] = {S->environment, S->marked_environment};
  for (size_t i = 0; i < sizeof environments / sizeof *environments; i++) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, environments[i]);
    look_through(L, -1);
    for (size_t one = 0; one < added->count; one++) {
      lua_pushstring(L, added->list[one].name);
      lua_pushvalue(L, -1);
      if (lua_rawget(L, -3) == LUA_TNIL) {
        // The key keeps the text of the light pointer alive as long as the environment.
        lua_pushlightuserdata(L, (void *)lua_tostring(L, -2));
        lua_pushcclosure(L, forms[added->list[one].form], 1);
        lua_remove(L, -2);
        lua_rawset(L, -3);
      } else {
        lua_pop(L, 2);
      }
    }
    lua_settop(L, 1);
  }
  return 0;
}

clua_status clua_constructors_add(clua_state *S, const clua_constructor *list, size_t count) {
  addition added = {list, count};
  clua_status status = run_protected(S, add_list, &added, NULL);
  S->settled = false;
  collect_garbage(S);
  return status;
}
