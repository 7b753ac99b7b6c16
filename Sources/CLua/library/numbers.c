// `math`, without randomness and without functions whose last digit differs between machines.
#include <math.h>

#include "../internal.h"

static int push_whole(lua_State *L, lua_Number value) {
  lua_Integer whole;
  if (lua_numbertointeger(value, &whole))
    lua_pushinteger(L, whole);
  else
    lua_pushnumber(L, value);
  return 1;
}

static int math_floor(lua_State *L) {
  if (lua_isinteger(L, 1)) return lua_settop(L, 1), 1;
  return push_whole(L, floor(luaL_checknumber(L, 1)));
}

static int math_ceil(lua_State *L) {
  if (lua_isinteger(L, 1)) return lua_settop(L, 1), 1;
  return push_whole(L, ceil(luaL_checknumber(L, 1)));
}

static int math_abs(lua_State *L) {
  if (lua_isinteger(L, 1)) {
    lua_Integer value = lua_tointeger(L, 1);
    lua_pushinteger(L, value < 0 ? (lua_Integer)(0u - (lua_Unsigned)value) : value);
  } else {
    lua_pushnumber(L, fabs(luaL_checknumber(L, 1)));
  }
  return 1;
}

static int math_sqrt(lua_State *L) { return lua_pushnumber(L, sqrt(luaL_checknumber(L, 1))), 1; }

static int math_fmod(lua_State *L) {
  if (lua_isinteger(L, 1) && lua_isinteger(L, 2)) {
    lua_Integer divisor = lua_tointeger(L, 2);
    if (divisor == 0) return raise(L, "math.fmod: division by zero");
    lua_pushinteger(L, divisor == -1 ? 0 : lua_tointeger(L, 1) % divisor); // avoids the trap of min / -1
  } else {
    lua_pushnumber(L, fmod(luaL_checknumber(L, 1), luaL_checknumber(L, 2)));
  }
  return 1;
}

static int extreme(lua_State *L, bool greatest) {
  int count = lua_gettop(L), best = 1;
  luaL_checknumber(L, 1);
  charge(L, (uint64_t)count);
  for (int i = 2; i <= count; i++) {
    luaL_checknumber(L, i);
    if (greatest ? lua_compare(L, best, i, LUA_OPLT) : lua_compare(L, i, best, LUA_OPLT)) best = i;
  }
  lua_pushvalue(L, best);
  return 1;
}

static int math_max(lua_State *L) { return extreme(L, true); }
static int math_min(lua_State *L) { return extreme(L, false); }

static int math_tointeger(lua_State *L) {
  int is_whole;
  lua_Integer value = lua_type(L, 1) == LUA_TNUMBER ? lua_tointegerx(L, 1, &is_whole) : (luaL_checkany(L, 1),
    is_whole = 0, 0);
  if (is_whole)
    lua_pushinteger(L, value);
  else
    lua_pushnil(L);
  return 1;
}

static int math_type(lua_State *L) {
  luaL_checkany(L, 1);
  if (lua_type(L, 1) == LUA_TNUMBER)
    lua_pushstring(L, lua_isinteger(L, 1) ? "integer" : "float");
  else
    lua_pushnil(L);
  return 1;
}

static const luaL_Reg functions[] = {
  {"abs", math_abs}, {"ceil", math_ceil}, {"floor", math_floor}, {"fmod", math_fmod}, {"max", math_max},
  {"min", math_min}, {"sqrt", math_sqrt}, {"tointeger", math_tointeger}, {"type", math_type}, {NULL, NULL},
};

void numbers_open(lua_State *L) {
  lua_newtable(L);
  add_functions(L, functions);
  lua_pushinteger(L, LUA_MAXINTEGER);
  lua_setfield(L, -2, "maxinteger");
  lua_pushinteger(L, LUA_MININTEGER);
  lua_setfield(L, -2, "mininteger");
  lua_pushnumber(L, HUGE_VAL);
  lua_setfield(L, -2, "huge");
  lua_pushnumber(L, 3.141592653589793);
  lua_setfield(L, -2, "pi");
}
