// Strings are built in a userdata on the stack. The budget counts it, and the collector frees it when an error is
// raised.
#include "../internal.h"

void buffer_begin(buffer *b, lua_State *L) {
  b->L = L;
  b->count = 0;
  b->capacity = 64;
  b->bytes = lua_newuserdatauv(L, b->capacity, 0);
  b->index = lua_gettop(L);
}

void buffer_add(buffer *b, const char *bytes, size_t count) {
  charge(b->L, 1 + count / 16);
  if (count > b->capacity - b->count) {
    if (count > SIZE_MAX / 4 - b->capacity) kill_run(b->L, CLUA_KILLED_MEMORY);
    size_t capacity = b->capacity;
    while (capacity - b->count < count) capacity *= 2;
    luaL_checkstack(b->L, 1, NULL);
    char *grown = lua_newuserdatauv(b->L, capacity, 0);
    memcpy(grown, b->bytes, b->count);
    lua_replace(b->L, b->index);
    b->bytes = grown;
    b->capacity = capacity;
  }
  if (count > 0) memcpy(b->bytes + b->count, bytes, count);
  b->count += count;
}

void buffer_push(buffer *b) { lua_pushlstring(b->L, b->bytes, b->count); }
