// Keeps the results of a chunk: its value as a flat tree, and its functions, whose upvalues are frozen or restored.
#include "../internal.h"

// MARK: upvalues

typedef struct {
  int visited; // table: visited values
  int list;    // array: function, index, value, …
  lua_Integer count;
} capture;

static bool is_new(lua_State *L, capture *c, int index) {
  lua_pushvalue(L, index);
  bool seen = lua_rawget(L, c->visited) != LUA_TNIL;
  lua_pop(L, 1);
  if (seen) return false;
  lua_pushvalue(L, index);
  lua_pushboolean(L, 1);
  lua_rawset(L, c->visited);
  return true;
}

static void capture_value(lua_State *L, capture *c, int index, int depth);

static void capture_function(lua_State *L, capture *c, int function, int depth) {
  function = lua_absindex(L, function);
  if (lua_tocfunction(L, function) == gmatch_step)
    raise(L, "an iterator of gmatch cannot be kept between calls: call gmatch where it is used");
  if (lua_iscfunction(L, function)) return; // a library function without state
  for (int i = 1; lua_getupvalue(L, function, i) != NULL; i++) {
    int value = lua_gettop(L);
    lua_pushvalue(L, function);
    lua_rawseti(L, c->list, ++c->count);
    lua_pushinteger(L, i);
    lua_rawseti(L, c->list, ++c->count);
    lua_pushvalue(L, value);
    lua_rawseti(L, c->list, ++c->count);
    capture_value(L, c, value, depth + 1);
    lua_settop(L, value - 1);
  }
}

static void capture_value(lua_State *L, capture *c, int index, int depth) {
  if (depth > 100) raise(L, "the upvalues of a function are nested too deeply");
  luaL_checkstack(L, 12, NULL);
  index = lua_absindex(L, index);
  charge(L, 1);
  switch (lua_type(L, index)) {
    case LUA_TFUNCTION:
      if (is_new(L, c, index)) capture_function(L, c, index, depth);
      return;
    case LUA_TTABLE:
      if (!is_new(L, c, index)) return;
      // a view: look at the table behind it, unless it is a library (whose metatable refuses unknown names)
      if (lua_getmetatable(L, index)) {
        lua_pop(L, 1);
        lua_pushvalue(L, index);
        look_through(L, -1);
        bool library = lua_getmetatable(L, -1);
        lua_pop(L, library ? 2 : 1);
        if (library) return;
      } else {
        freeze_table(L, index);
      }
      lua_pushvalue(L, index);
      look_through(L, -1);
      index = lua_gettop(L);
      lua_pushnil(L);
      while (lua_next(L, index)) {
        int value = lua_gettop(L);
        capture_value(L, c, value, depth + 1);
        capture_value(L, c, value - 1, depth + 1);
        lua_settop(L, value - 1);
      }
      lua_settop(L, index - 1);
      return;
    case LUA_TUSERDATA: {
      tagged *value = to_tagged(L, index);
      int values = value != NULL ? value->values : is_pairs_state(L, index) ? 1 : 0; // its keys are not accessible
      if (values == 0 || !is_new(L, c, index)) return;
      for (int i = 1; i <= values; i++) {
        lua_getiuservalue(L, index, i);
        capture_value(L, c, -1, depth + 1);
        lua_pop(L, 1);
      }
      return;
    }
    default: return;
  }
}

void put_back(lua_State *L, kept_function *function) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, function->restore_ref);
  for (int i = 0; i < function->restores; i++) {
    lua_rawgeti(L, -1, 3 * i + 1);
    lua_rawgeti(L, -2, 3 * i + 2);
    int index = (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
    lua_rawgeti(L, -2, 3 * i + 3);
    lua_setupvalue(L, -2, index);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

// Keeps the function at `index` and returns its number.
static int32_t keep_function(lua_State *L, clua_state *S, int index) {
  index = lua_absindex(L, index);
  if (S->function_count == S->function_capacity) {
    int32_t capacity = S->function_capacity == 0 ? 8 : S->function_capacity * 2;
    kept_function *grown = realloc(S->functions, sizeof *grown * (size_t)capacity);
    if (grown == NULL) luaL_error(L, "out of memory");
    S->functions = grown;
    S->function_capacity = capacity;
  }
  capture c;
  lua_newtable(L);
  c.visited = lua_gettop(L);
  lua_newtable(L);
  c.list = lua_gettop(L);
  c.count = 0;
  capture_value(L, &c, index, 0);
  kept_function *kept = &S->functions[S->function_count];
  memcpy(kept->name, S->name, sizeof kept->name);
  kept->longest = S->longest;
  kept->restores = (int)(c.count / 3);
  kept->restore_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  lua_pop(L, 1);
  lua_pushvalue(L, index);
  kept->ref = luaL_ref(L, LUA_REGISTRYINDEX);
  return S->function_count++;
}

// MARK: value tree

static void add_text(lua_State *L, clua_state *S, const char *text, size_t length, size_t *offset) {
  charge(L, 1 + length / 64);
  if (S->text_count + length > S->text_capacity) {
    size_t needed = S->text_count + length;
    size_t capacity = S->text_capacity * 2 > needed ? S->text_capacity * 2 : needed + 256;
    char *grown = realloc(S->text, capacity);
    if (grown == NULL) luaL_error(L, "out of memory");
    S->text = grown;
    S->text_capacity = capacity;
  }
  if (length > 0) memcpy(S->text + S->text_count, text, length);
  *offset = S->text_count;
  S->text_count += length;
}

static size_t add_node(lua_State *L, clua_state *S) {
  if (S->node_count >= NODES_MAX) raise(L, "more than %d values", NODES_MAX);
  if (S->node_count == S->node_capacity) {
    size_t capacity = S->node_capacity == 0 ? 64 : S->node_capacity * 2;
    clua_node *grown = realloc(S->nodes, sizeof *grown * capacity);
    if (grown == NULL) luaL_error(L, "out of memory");
    S->nodes = grown;
    S->node_capacity = capacity;
  }
  clua_node *node = &S->nodes[S->node_count];
  memset(node, 0, sizeof *node);
  node->mark = node->function = node->module = -1;
  return S->node_count++;
}

static size_t add_value(lua_State *L, clua_state *S, int index, int depth);

// Adds the value on top to the tree, under the key at `key` (0: under its position); pops the value.
static void add_child(lua_State *L, clua_state *S, int key, lua_Integer place, int depth) {
  size_t child = add_value(L, S, -1, depth);
  lua_pop(L, 1);
  clua_node *node = &S->nodes[child];
  if (key != 0 && lua_type(L, key) == LUA_TSTRING) {
    size_t length, offset;
    const char *text = lua_tolstring(L, key, &length);
    add_text(L, S, text, length, &offset);
    node->key_kind = CLUA_STRING;
    node->key_offset = offset;
    node->key_length = length;
  } else if (key == 0 || lua_isinteger(L, key)) {
    node->key_kind = CLUA_INTEGER;
    node->key_integer = key == 0 ? place : lua_tointeger(L, key);
  } else {
    node->key_kind = CLUA_OTHER;
  }
}

// Adds the entries of the table at `index` as children of the node `at`, in the order of the sorted keys.
static void add_table(lua_State *L, clua_state *S, int index, size_t at, int depth) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &mark_key);
  lua_pushvalue(L, index);
  if (lua_rawget(L, -2) == LUA_TNUMBER) S->nodes[at].mark = (int32_t)lua_tointeger(L, -1);
  lua_pop(L, 2);
  push_sorted_keys(L, index);
  int keys = lua_gettop(L);
  lua_Integer count = (lua_Integer)lua_rawlen(L, keys);
  for (lua_Integer i = 1; i <= count; i++) {
    lua_rawgeti(L, keys, i);
    int key = lua_gettop(L);
    lua_pushvalue(L, index);
    look_through(L, -1); // each time: a function among the values may hold this table, which is then frozen
    lua_pushvalue(L, key);
    lua_rawget(L, -2);
    add_child(L, S, key, 0, depth + 1);
    lua_settop(L, keys);
  }
  lua_settop(L, keys - 1);
  S->nodes[at].children = (int32_t)count;
}

// Adds the arguments of the constructor that made the value at `index` as children of the node `at`.
static void add_tagged(lua_State *L, clua_state *S, int index, size_t at, int depth) {
  const tagged *value = to_tagged(L, index);
  S->nodes[at].line = value->line;
  for (int i = 1; i <= value->values; i++) {
    lua_getiuservalue(L, index, i);
    add_child(L, S, 0, i, depth + 1);
  }
  S->nodes[at].children = value->values;
}

// Keeps the function at `index` for the node `at`.
static void add_function(lua_State *L, clua_state *S, int index, size_t at) {
  if (S->keeps_no_function) raise(L, "a result cannot contain a function");
  lua_Debug about;
  lua_pushvalue(L, index);
  lua_getinfo(L, ">S", &about);
  S->nodes[at].line = about.linedefined;
  S->nodes[at].module = module_of(S, about.source);
  int32_t function = keep_function(L, S, index);
  S->nodes[at].function = function;
}

// Adds the value at `index` and all values in it to the tree. Returns the number of its node.
static size_t add_value(lua_State *L, clua_state *S, int index, int depth) {
  index = lua_absindex(L, index);
  luaL_checkstack(L, 12, NULL);
  if (depth > DEPTH_MAX) raise(L, "tables are nested more than %d deep", DEPTH_MAX);
  charge(L, 1);
  size_t at = add_node(L, S);
  size_t length;
  const char *text = NULL;
  clua_kind kind = CLUA_OTHER;
  switch (lua_type(L, index)) {
    case LUA_TNIL: kind = CLUA_NIL; break;
    case LUA_TBOOLEAN:
      kind = CLUA_BOOLEAN;
      S->nodes[at].boolean = lua_toboolean(L, index);
      break;
    case LUA_TNUMBER:
      kind = lua_isinteger(L, index) ? CLUA_INTEGER : CLUA_NUMBER;
      S->nodes[at].integer = lua_isinteger(L, index) ? lua_tointeger(L, index) : 0;
      S->nodes[at].number = lua_tonumber(L, index);
      break;
    case LUA_TSTRING:
      kind = CLUA_STRING;
      text = lua_tolstring(L, index, &length);
      break;
    case LUA_TTABLE:
      kind = CLUA_TABLE;
      add_table(L, S, index, at, depth);
      break;
    case LUA_TFUNCTION:
      if (lua_iscfunction(L, index)) {
        text = "built-in function";
        length = strlen(text);
      } else {
        kind = CLUA_FUNCTION;
        add_function(L, S, index, at);
      }
      break;
    case LUA_TUSERDATA: {
      tagged *value = to_tagged(L, index);
      if (value == NULL) {
        text = "userdata";
      } else {
        kind = value->kind;
        text = value->name;
        add_tagged(L, S, index, at, depth);
      }
      length = strlen(text);
      break;
    }
    default:
      text = luaL_typename(L, index);
      length = strlen(text);
      break;
  }
  if (text != NULL) {
    add_text(L, S, text, length, &S->nodes[at].text_offset);
    S->nodes[at].text_length = length;
  }
  S->nodes[at].kind = kind;
  return at;
}

void keep_result(lua_State *L, clua_state *S) {
  add_value(L, S, -1, 0);
}
