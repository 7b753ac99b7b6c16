#define _GNU_SOURCE // memmem
// The helpers of scripts: text, addresses, durations and hours.
#include <arpa/inet.h>
#include <stdio.h>

#include "../internal.h"

static int starts_with(lua_State *L) {
  size_t length, prefix_length;
  const char *text = check_text(L, 1, &length), *prefix = check_text(L, 2, &prefix_length);
  charge(L, 1 + prefix_length / 16);
  lua_pushboolean(L, prefix_length <= length && memcmp(text, prefix, prefix_length) == 0);
  return 1;
}

static int ends_with(lua_State *L) {
  size_t length, suffix_length;
  const char *text = check_text(L, 1, &length), *suffix = check_text(L, 2, &suffix_length);
  charge(L, 1 + suffix_length / 16);
  lua_pushboolean(L, suffix_length <= length && memcmp(text + length - suffix_length, suffix, suffix_length) == 0);
  return 1;
}

static int contains(lua_State *L) {
  size_t length, part_length;
  const char *text = check_text(L, 1, &length), *part = check_text(L, 2, &part_length);
  charge(L, 1 + length + part_length);
  lua_pushboolean(L, part_length == 0 || memmem(text, length, part, part_length) != NULL);
  return 1;
}

// `*` matches any bytes. One position for backtracking is enough, so the work is at most length times length.
static int glob(lua_State *L) {
  size_t length, pattern_length;
  const char *text = check_text(L, 1, &length), *pattern = check_text(L, 2, &pattern_length);
  size_t t = 0, p = 0, star = SIZE_MAX, resume = 0;
  uint64_t work = 1;
  while (t < length) {
    if (++work % 64 == 0) charge(L, 64);
    if (p < pattern_length && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern_length && pattern[p] == text[t]) {
      p++, t++;
    } else if (star != SIZE_MAX) {
      p = star + 1;
      t = ++resume;
    } else {
      return lua_pushboolean(L, 0), 1;
    }
  }
  while (p < pattern_length && pattern[p] == '*') p++;
  lua_pushboolean(L, p == pattern_length);
  return 1;
}

// 4 or 16 bytes; 0 if the text is not an address.
static int read_address(const char *text, size_t length, unsigned char *bytes) {
  char copy[64];
  if (length == 0 || length >= sizeof copy || memchr(text, 0, length) != NULL) return 0;
  memcpy(copy, text, length);
  copy[length] = 0;
  if (inet_pton(AF_INET, copy, bytes) == 1) return 4;
  if (inet_pton(AF_INET6, copy, bytes) != 1) return 0;
  static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
  if (memcmp(bytes, mapped, 12) != 0) return 16;
  memmove(bytes, bytes + 12, 4); // treats ::ffff:a.b.c.d as a.b.c.d, since it is the same client
  return 4;
}

static int cidr(lua_State *L) {
  size_t length, address_length;
  const char *block = check_text(L, 1, &length);
  const char *text = check_text(L, 2, &address_length);
  charge(L, 4);
  const char *slash = memchr(block, '/', length);
  unsigned char network[16], address[16];
  int size = slash == NULL ? 0 : read_address(block, (size_t)(slash - block), network);
  int bits = 0, digits = 0;
  for (const char *p = slash == NULL ? block + length : slash + 1; p < block + length; p++, digits++) {
    if (*p < '0' || *p > '9' || digits == 3) {
      size = 0;
      break;
    }
    bits = bits * 10 + (*p - '0');
  }
  if (size == 0 || digits == 0 || bits > size * 8) return raise(L,
    "cidr: `%.60s` is not an address block such as 10.0.0.0/8", block);
  if (read_address(text, address_length, address) != size) return lua_pushboolean(L, 0), 1;
  bool inside = memcmp(network, address, (size_t)bits / 8) == 0;
  if (inside && bits % 8 != 0) {
    unsigned char mask = (unsigned char)(0xff << (8 - bits % 8));
    inside = ((network[bits / 8] ^ address[bits / 8]) & mask) == 0;
  }
  lua_pushboolean(L, inside);
  return 1;
}

static int one_of(lua_State *L) {
  luaL_checkany(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_Integer count = luaL_len(L, 2);
  for (lua_Integer i = 1; i <= count; i++) {
    charge(L, 1);
    lua_geti(L, 2, i);
    if (lua_rawequal(L, 1, -1)) return lua_pushboolean(L, 1), 1;
    lua_pop(L, 1);
  }
  lua_pushboolean(L, 0);
  return 1;
}

bool clua_parse_duration(const char *text, size_t length, int64_t *milliseconds) {
  static const struct {
    const char *unit;
    int64_t milliseconds;
  } units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
  const int64_t longest = 100LL * 365 * 86400000;
  const char *end = text + length;
  int64_t total = 0;
  size_t next_unit = 0;
  if (length == 0) return false;
  while (text < end) {
    int64_t count = 0;
    int digits = 0;
    for (; text < end && *text >= '0' && *text <= '9'; text++, digits++) {
      if (digits >= 15) return false;
      count = count * 10 + (*text - '0');
    }
    if (digits == 0) return false;
    const char *unit = text;
    while (text < end && *text >= 'a' && *text <= 'z') text++;
    while (next_unit < 5 && !(strlen(units[next_unit].unit) == (size_t)(text - unit) &&
      memcmp(units[next_unit].unit, unit, (size_t)(text - unit)) == 0))
      next_unit++;
    if (next_unit == 5 || count > longest / units[next_unit].milliseconds) return false;
    total += count * units[next_unit++].milliseconds;
    if (total > longest) return false;
  }
  *milliseconds = total;
  return true;
}

// In seconds, for arithmetic with f.now and ages.
static int duration(lua_State *L) {
  size_t length;
  int64_t milliseconds;
  if (lua_type(L, 1) != LUA_TSTRING) return raise(L, "duration takes a string such as \"15m\"");
  const char *text = lua_tolstring(L, 1, &length);
  charge(L, 2);
  if (!clua_parse_duration(text, length, &milliseconds)) return raise(L,
    "`%.60s` is not a duration such as \"90s\", \"10m\", \"1h30m\" or \"7d\"", text);
  if (milliseconds % 1000 == 0)
    lua_pushinteger(L, milliseconds / 1000);
  else
    lua_pushnumber(L, (lua_Number)milliseconds / 1000);
  return 1;
}

static int hour(lua_State *L) {
  lua_Integer seconds = luaL_checkinteger(L, 1);
  size_t length;
  const char *zone = check_text(L, 2, &length);
  clua_state *S = state_of(L);
  clua_value value;
  memset(&value, 0, sizeof value);
  charge(L, 50);
  int refused = S->callbacks.hour == NULL ? 1 : S->callbacks.hour(S->callbacks.context, seconds, zone, length, &value);
  if (refused) return raise_answer(L, &value, "time zones cannot be read here");
  lua_pushinteger(L, value.integer);
  return 1;
}

static const luaL_Reg functions[] = {
  {"starts_with", starts_with}, {"ends_with", ends_with}, {"contains", contains}, {"glob", glob}, {"cidr", cidr},
  {"one_of", one_of}, {"duration", duration}, {"hour", hour}, {NULL, NULL},
};

void helpers_add(lua_State *L) { add_functions(L, functions); }
