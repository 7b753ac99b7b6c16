// `table`: every loop charges the budget before it runs.
#include "../internal.h"

static lua_Integer length_of(lua_State *L, int index) {
  luaL_checktype(L, index, LUA_TTABLE);
  return luaL_len(L, index);
}

static int table_concat(lua_State *L) {
  lua_Integer last = length_of(L, 1);
  size_t separator_length = 0;
  const char *separator = lua_isnoneornil(L, 2) ? "" : check_text(L, 2, &separator_length);
  lua_Integer i = luaL_optinteger(L, 3, 1);
  last = luaL_optinteger(L, 4, last);
  lua_settop(L, 4);
  buffer b;
  buffer_begin(&b, L);
  for (bool first = true; i <= last; i++, first = false) {
    charge(L, 1);
    if (!first) buffer_add(&b, separator, separator_length);
    int type = lua_geti(L, 1, i);
    if (type != LUA_TSTRING && type != LUA_TNUMBER) return raise(L, "table.concat: item %lld is a %s", (long long)i,
      luaL_typename(L, -1));
    size_t length;
    const char *text = lua_tolstring(L, -1, &length);
    buffer_add(&b, text, length);
    lua_pop(L, 1);
    if (i == LUA_MAXINTEGER) break;
  }
  buffer_push(&b);
  return 1;
}

static int table_insert(lua_State *L) {
  lua_Integer next = length_of(L, 1) + 1;
  lua_Integer at = next;
  int arguments = lua_gettop(L);
  if (arguments == 3) {
    at = luaL_checkinteger(L, 2);
    if (at < 1 || at > next) return raise(L, "table.insert: the position is out of range");
    charge(L, (uint64_t)(next - at));
    for (lua_Integer i = next; i > at; i--) {
      lua_geti(L, 1, i - 1);
      lua_seti(L, 1, i);
    }
  } else if (arguments != 2) {
    return raise(L, "table.insert takes two or three arguments");
  }
  lua_pushvalue(L, arguments);
  lua_seti(L, 1, at);
  return 0;
}

static int table_remove(lua_State *L) {
  lua_Integer size = length_of(L, 1);
  lua_Integer at = luaL_optinteger(L, 2, size);
  if (lua_gettop(L) > 1 && size + 1 != at && (at < 1 || at > size + 1)) {
    if (!(size == 0 && at == 0)) return raise(L, "table.remove: the position is out of range");
  }
  lua_geti(L, 1, at);
  if (at < size) charge(L, (uint64_t)(size - at));
  for (; at < size; at++) {
    lua_geti(L, 1, at + 1);
    lua_seti(L, 1, at);
  }
  lua_pushnil(L);
  lua_seti(L, 1, at);
  return 1;
}

static int table_move(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_Integer from = luaL_checkinteger(L, 2), end = luaL_checkinteger(L, 3), to = luaL_checkinteger(L, 4);
  int target = lua_isnoneornil(L, 5) ? 1 : 5;
  luaL_checktype(L, target, LUA_TTABLE);
  if (end >= from) {
    uint64_t count = (uint64_t)end - (uint64_t)from + 1;
    charge(L, count == 0 ? UINT64_MAX : count); // 0: all 2^64 of them
    if (to > LUA_MAXINTEGER - (lua_Integer)count + 1) return raise(L, "table.move: there is no room at the end");
    bool upwards = to > end || to <= from || (target != 1 && !lua_rawequal(L, 1, target));
    for (uint64_t k = 0; k < count; k++) {
      lua_Integer offset = (lua_Integer)(upwards ? k : count - 1 - k);
      lua_geti(L, 1, from + offset);
      lua_seti(L, target, to + offset);
    }
  }
  lua_pushvalue(L, target);
  return 1;
}

static int table_pack(lua_State *L) {
  int count = lua_gettop(L);
  charge(L, (uint64_t)count);
  lua_createtable(L, count, 1);
  lua_insert(L, 1);
  for (int i = count; i >= 1; i--) lua_seti(L, 1, i);
  lua_pushinteger(L, count);
  lua_setfield(L, 1, "n");
  return 1;
}

static int table_unpack(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_Integer from = luaL_optinteger(L, 2, 1);
  lua_Integer end = lua_isnoneornil(L, 3) ? length_of(L, 1) : luaL_checkinteger(L, 3);
  if (from > end) return 0;
  uint64_t count = (uint64_t)end - (uint64_t)from + 1;
  if (count == 0 || count > 10000 || !lua_checkstack(L, (int)count)) return raise(L, "table.unpack: too many values");
  charge(L, count);
  for (uint64_t k = 0; k < count; k++) lua_geti(L, 1, from + (lua_Integer)k);
  return (int)count;
}

// MARK: sort

// Whether the value at stack index a sorts before the one at b.
static bool is_before(lua_State *L, int a, int b) {
  charge(L, 2);
  if (lua_isnil(L, 2)) {
    if (lua_type(L, a) == LUA_TSTRING && lua_type(L, b) == LUA_TSTRING) charge(L, lua_rawlen(L, a) / 64);
    return lua_compare(L, a, b, LUA_OPLT);
  }
  lua_pushvalue(L, 2);
  lua_pushvalue(L, a < 0 ? a - 1 : a);
  lua_pushvalue(L, b < 0 ? b - 2 : b);
  lua_call(L, 2, 1);
  bool answer = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return answer;
}

// Merges runs bottom-up between two plain tables. The sort is stable and takes n log n steps, whatever the comparator
// returns. An inconsistent comparator only leads to another order.
static int table_sort(lua_State *L) {
  lua_Integer count = length_of(L, 1);
  if (!lua_isnoneornil(L, 2)) luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  if (count < 2) return 0;
  if (count > 1000000) return raise(L, "table.sort: too many items");
  charge(L, (uint64_t)count);
  lua_createtable(L, (int)count, 0);
  lua_createtable(L, (int)count, 0);
  int source = 3, target = 4;
  for (lua_Integer i = 1; i <= count; i++) {
    if (lua_geti(L, 1, i) == LUA_TNIL) return raise(L, "table.sort: item %lld is nil", (long long)i);
    lua_rawseti(L, source, i);
  }
  for (lua_Integer width = 1; width < count; width *= 2) {
    for (lua_Integer start = 1; start <= count; start += 2 * width) {
      lua_Integer middle = start + width <= count + 1 ? start + width : count + 1;
      lua_Integer end = start + 2 * width <= count + 1 ? start + 2 * width : count + 1;
      lua_Integer left = start, right = middle;
      for (lua_Integer out = start; out < end; out++) {
        charge(L, 1);
        bool take_right = left >= middle;
        if (!take_right && right < end) {
          lua_rawgeti(L, source, right);
          lua_rawgeti(L, source, left);
          take_right = is_before(L, -2, -1);
          lua_pop(L, 2);
        }
        lua_rawgeti(L, source, take_right ? right++ : left++);
        lua_rawseti(L, target, out);
      }
    }
    int other = source;
    source = target, target = other;
  }
  for (lua_Integer i = 1; i <= count; i++) {
    lua_rawgeti(L, source, i);
    lua_seti(L, 1, i);
  }
  return 0;
}

static const luaL_Reg functions[] = {
  {"concat", table_concat}, {"insert", table_insert}, {"move", table_move}, {"pack", table_pack},
  {"remove", table_remove}, {"sort", table_sort}, {"unpack", table_unpack}, {NULL, NULL},
};

void tables_open(lua_State *L) {
  lua_newtable(L);
  add_functions(L, functions);
}
