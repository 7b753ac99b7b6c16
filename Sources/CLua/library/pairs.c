// `pairs` in sorted order. Lua's own order depends on addresses and a random seed, so the same facts could lead to
// different decisions.
//
// What is left of the seed: `#t` is Lua's own and may be any border of a list with holes. Which one follows from the
// sizes of the table's two parts, and so from its keys alone, as long as nothing was removed from a table that also has
// text keys. A list without holes has one border.
#include "../internal.h"

typedef struct {
  int rank; // booleans, then numbers, then strings
  bool whole;
  lua_Integer integer;
  lua_Number number;
  const char *text;
  size_t length;
  lua_Integer place; // in the unsorted array
} sort_key;

static bool read_key(lua_State *L, int index, sort_key *key) {
  switch (lua_type(L, index)) {
    case LUA_TBOOLEAN:
      key->rank = 0, key->whole = true, key->integer = lua_toboolean(L, index);
      return true;
    case LUA_TNUMBER:
      key->rank = 1, key->whole = lua_isinteger(L, index);
      key->integer = key->whole ? lua_tointeger(L, index) : 0;
      key->number = lua_tonumber(L, index);
      return true;
    case LUA_TSTRING:
      key->rank = 2;
      key->text = lua_tolstring(L, index, &key->length);
      return true;
    default: return false;
  }
}

static int compare_keys(const void *left_key, const void *right_key) {
  const sort_key *left = left_key, *right = right_key;
  if (left->rank != right->rank) return left->rank < right->rank ? -1 : 1;
  if (left->rank == 2) {
    size_t shorter = left->length < right->length ? left->length : right->length;
    int order = memcmp(left->text, right->text, shorter);
    if (order != 0) return order;
    return left->length < right->length ? -1 : left->length > right->length;
  }
  if (left->whole && right->whole) return left->integer < right->integer ? -1 : left->integer > right->integer;
  // Exact for 64-bit integers compared with doubles if long double has at least 64 bits of mantissa.
  long double a = left->whole ? (long double)left->integer : (long double)left->number;
  long double b = right->whole ? (long double)right->integer : (long double)right->number;
  return a < b ? -1 : a > b;
}

void push_sorted_keys(lua_State *L, int index) {
  index = lua_absindex(L, index);
  luaL_checkstack(L, 8, NULL);
  lua_pushvalue(L, index);
  look_through(L, -1);
  int table = lua_gettop(L);
  lua_newtable(L);
  int unsorted = lua_gettop(L);
  lua_Integer count = 0;
  uint64_t bytes = 0;
  lua_pushnil(L);
  while (lua_next(L, table)) {
    lua_pop(L, 1);
    sort_key key;
    if (!read_key(L, -1, &key)) raise(L, "keys of type %s have no order: use strings, numbers or booleans",
      luaL_typename(L, -1));
    if (key.rank == 2) bytes += key.length;
    lua_pushvalue(L, -1);
    lua_rawseti(L, unsorted, ++count);
    charge(L, 1);
  }
  uint64_t rounds = 1;
  while (((lua_Integer)1 << rounds) < count) rounds++;
  charge(L, ((uint64_t)count + bytes / 64) * rounds / 4);
  sort_key *keys = lua_newuserdatauv(L, (size_t)count * sizeof *keys + 1, 0);
  for (lua_Integer i = 0; i < count; i++) {
    lua_rawgeti(L, unsorted, i + 1);
    read_key(L, -1, &keys[i]);
    keys[i].place = i + 1;
    lua_pop(L, 1); // anchored by the array
  }
  qsort(keys, (size_t)count, sizeof *keys, compare_keys);
  lua_createtable(L, (int)count, 0);
  for (lua_Integer i = 0; i < count; i++) {
    lua_rawgeti(L, unsorted, keys[i].place);
    lua_rawseti(L, -2, i + 1);
  }
  lua_replace(L, table);
  lua_settop(L, table);
}

// MARK: iteration

// The iterated value (user value 1) and its keys at the start (user value 2). Only the control variable decides what
// comes next, so an iterator that outlives a call cannot carry over any state.
typedef struct {
  lua_Integer count;
  lua_Integer hint; // the last returned position: saves the search, does not change results
} pairs_state;

static const char pairs_key = 0;

bool is_pairs_state(lua_State *L, int index) {
  if (lua_type(L, index) != LUA_TUSERDATA || !lua_getmetatable(L, index)) return false;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pairs_key);
  bool same = lua_rawequal(L, -1, -2);
  lua_pop(L, 2);
  return same;
}

static lua_Integer place_after(lua_State *L, pairs_state *state, int keys, int control) {
  if (lua_isnil(L, control)) return 1;
  if (state->hint >= 1 && state->hint <= state->count) {
    lua_rawgeti(L, keys, state->hint);
    bool same = lua_rawequal(L, -1, control);
    lua_pop(L, 1);
    if (same) return state->hint + 1;
  }
  sort_key wanted;
  if (!read_key(L, control, &wanted)) return state->count + 1;
  lua_Integer low = 1, high = state->count + 1; // the first key that is greater
  while (low < high) {
    lua_Integer middle = low + (high - low) / 2;
    sort_key key;
    lua_rawgeti(L, keys, middle);
    read_key(L, -1, &key);
    lua_pop(L, 1);
    if (compare_keys(&key, &wanted) <= 0)
      low = middle + 1;
    else
      high = middle;
  }
  charge(L, 4);
  return low;
}

static int pairs_step(lua_State *L) {
  lua_settop(L, 2);
  if (!is_pairs_state(L, 1)) return raise(L, "this iterator works only with the value that pairs returned with it");
  pairs_state *state = lua_touserdata(L, 1);
  lua_getiuservalue(L, 1, 1); // 3
  lua_getiuservalue(L, 1, 2); // 4
  for (lua_Integer place = place_after(L, state, 4, 2); place <= state->count; place++) {
    charge(L, 1);
    lua_rawgeti(L, 4, place);
    lua_pushvalue(L, -1);
    if (lua_gettable(L, 3) != LUA_TNIL) { // skip keys that were removed meanwhile
      state->hint = place;
      return 2;
    }
    lua_pop(L, 2);
  }
  return 0;
}

static int base_pairs(lua_State *L) {
  lua_settop(L, 1);
  if (is_facts(L, 1)) {
    push_fact_keys(L, 1);
  } else {
    luaL_checktype(L, 1, LUA_TTABLE);
    push_sorted_keys(L, 1);
    look_through(L, 1);
  }
  lua_pushcfunction(L, pairs_step);
  pairs_state *state = lua_newuserdatauv(L, sizeof *state, 2);
  state->count = (lua_Integer)lua_rawlen(L, 2);
  state->hint = 0;
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  lua_pushvalue(L, 2);
  lua_setiuservalue(L, -2, 2);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &pairs_key);
  lua_setmetatable(L, -2);
  lua_pushnil(L);
  return 3;
}

void ordered_pairs_add(lua_State *L) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &pairs_key) == LUA_TNIL) {
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &pairs_key);
  }
  lua_pop(L, 1);
  lua_pushcfunction(L, base_pairs);
  lua_setfield(L, -2, "pairs");
}
