#include "CBareLua.h"

#include <lua5.4/lauxlib.h>
#include <lua5.4/lua.h>
#include <time.h>

uint64_t bare_lua_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

int bare_lua_times(const char *text, uint32_t *nanoseconds, size_t count) {
  lua_State *L = luaL_newstate();
  if (L == NULL || luaL_dostring(L, text) != LUA_OK) return 1;
  for (size_t i = 0; i < count; i++) {
    uint64_t start = bare_lua_now();
    lua_getglobal(L, "decide");
    lua_getglobal(L, "facts");
    int status = lua_pcall(L, 1, 1, 0);
    lua_settop(L, 0);
    nanoseconds[i] = (uint32_t)(bare_lua_now() - start);
    if (status != LUA_OK) return 1;
  }
  lua_close(L);
  return 0;
}
