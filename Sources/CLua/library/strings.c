// `string`: the functions of Lua's library that scripts need, with every loop charged. Letters are ASCII, regardless
// of the locale.
#include <stdio.h>

#include "../internal.h"

// The byte position for a Lua position. Negative positions count from the end.
static lua_Integer position(lua_Integer at, size_t length) {
  if (at >= 0) return at;
  if ((lua_Unsigned)(-(at + 1)) + 1 > length) return 0;
  return (lua_Integer)length + at + 1;
}

static int string_len(lua_State *L) {
  size_t length;
  check_text(L, 1, &length);
  lua_pushinteger(L, (lua_Integer)length);
  return 1;
}

static int string_sub(lua_State *L) {
  size_t length;
  const char *text = check_text(L, 1, &length);
  lua_Integer from = position(luaL_checkinteger(L, 2), length);
  lua_Integer to = position(luaL_optinteger(L, 3, -1), length);
  if (from < 1) from = 1;
  if (to > (lua_Integer)length) to = (lua_Integer)length;
  if (from > to) return lua_pushliteral(L, ""), 1;
  charge(L, 1 + (uint64_t)(to - from) / 16);
  lua_pushlstring(L, text + from - 1, (size_t)(to - from + 1));
  return 1;
}

static int string_byte(lua_State *L) {
  size_t length;
  const char *text = check_text(L, 1, &length);
  lua_Integer from = position(luaL_optinteger(L, 2, 1), length);
  lua_Integer to = position(luaL_optinteger(L, 3, from), length);
  if (from < 1) from = 1;
  if (to > (lua_Integer)length) to = (lua_Integer)length;
  if (from > to) return 0;
  if (to - from >= 10000) return raise(L, "string.byte: too many values");
  charge(L, (uint64_t)(to - from + 1));
  luaL_checkstack(L, (int)(to - from + 1), NULL);
  for (lua_Integer i = from; i <= to; i++) lua_pushinteger(L, (unsigned char)text[i - 1]);
  return (int)(to - from + 1);
}

static int string_char(lua_State *L) {
  int count = lua_gettop(L);
  charge(L, (uint64_t)count);
  char *bytes = lua_newuserdatauv(L, (size_t)count + 1, 0);
  for (int i = 1; i <= count; i++) {
    lua_Integer byte = luaL_checkinteger(L, i);
    if (byte < 0 || byte > 255) return raise(L, "string.char: a byte is 0 to 255");
    bytes[i - 1] = (char)byte;
  }
  lua_pushlstring(L, bytes, (size_t)count);
  return 1;
}

static int map(lua_State *L, int (*letter)(int)) {
  size_t length;
  const char *text = check_text(L, 1, &length);
  charge(L, 1 + length / 8);
  char *bytes = lua_newuserdatauv(L, length + 1, 0);
  for (size_t i = 0; i < length; i++) bytes[i] = (char)letter((unsigned char)text[i]);
  lua_pushlstring(L, bytes, length);
  return 1;
}

static int lower_letter(int c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; }
static int upper_letter(int c) { return c >= 'a' && c <= 'z' ? c - 32 : c; }
static int string_lower(lua_State *L) { return map(L, lower_letter); }
static int string_upper(lua_State *L) { return map(L, upper_letter); }

static int string_reverse(lua_State *L) {
  size_t length;
  const char *text = check_text(L, 1, &length);
  charge(L, 1 + length / 8);
  char *bytes = lua_newuserdatauv(L, length + 1, 0);
  for (size_t i = 0; i < length; i++) bytes[i] = text[length - 1 - i];
  lua_pushlstring(L, bytes, length);
  return 1;
}

// The count is charged as well as the bytes. Lua's own function would loop over ("").rep(math.maxinteger) without a
// byte.
static int string_rep(lua_State *L) {
  size_t length, separator_length = 0;
  const char *text = check_text(L, 1, &length);
  lua_Integer count = luaL_checkinteger(L, 2);
  const char *separator = lua_isnoneornil(L, 3) ? "" : check_text(L, 3, &separator_length);
  if (count <= 0) return lua_pushliteral(L, ""), 1;
  charge(L, 1 + (uint64_t)count / 16);
  if (length + separator_length > 0 && (uint64_t)count > (uint64_t)(1 << 30) / (length + separator_length)) kill_run(L,
    CLUA_KILLED_MEMORY);
  size_t total = (size_t)count * length + (size_t)(count - 1) * separator_length;
  charge(L, total / 16);
  char *bytes = lua_newuserdatauv(L, total + 1, 0), *end = bytes;
  for (lua_Integer i = 0; i < count && total > 0; i++) {
    memcpy(end, text, length);
    end += length;
    if (i + 1 < count && separator_length > 0) {
      memcpy(end, separator, separator_length);
      end += separator_length;
    }
  }
  lua_pushlstring(L, bytes, total);
  return 1;
}

// MARK: format

// Parses one conversion after '%' into `spec`. Returns its letter, or 0 if it is not supported.
static char read_conversion(const char **at, const char *end, char *spec, size_t spec_size) {
  const char *p = *at;
  size_t count = 0;
  spec[count++] = '%';
  int flags = 0, width = 0, precision = 0;
  while (p < end && strchr("-+ #0", *p) != NULL && *p != 0 && flags < 5) spec[count++] = *p++, flags++;
  while (p < end && *p >= '0' && *p <= '9' && width < 2) spec[count++] = *p++, width++;
  if (p < end && *p == '.') {
    spec[count++] = *p++;
    while (p < end && *p >= '0' && *p <= '9' && precision < 2) spec[count++] = *p++, precision++;
  }
  if (p >= end || count + 4 > spec_size) return 0;
  char letter = *p++;
  *at = p;
  if (strchr("di", letter) != NULL || strchr("uxXo", letter) != NULL) {
    spec[count++] = 'l', spec[count++] = 'l';
  }
  spec[count++] = letter;
  spec[count] = 0;
  return letter;
}

static int string_format(lua_State *L) {
  size_t length;
  const char *format = check_text(L, 1, &length);
  const char *end = format + length;
  int arguments = lua_gettop(L), argument = 1;
  buffer b;
  buffer_begin(&b, L);
  while (format < end) {
    const char *plain = format;
    while (format < end && *format != '%') format++;
    if (format > plain) buffer_add(&b, plain, (size_t)(format - plain));
    if (format >= end) break;
    format++;
    if (format < end && *format == '%') {
      buffer_add(&b, format++, 1);
      continue;
    }
    char spec[24], text[512]; // "%99.99f" of the greatest double has 410 characters
    char letter = read_conversion(&format, end, spec, sizeof spec);
    if (letter == 0 || strchr("cdiuoxXeEfFgGs", letter) == NULL) return raise(L,
      "string.format: this conversion is not offered");
    if (++argument > arguments) return raise(L, "string.format: argument %d is missing", argument);
    int count = 0;
    switch (letter) {
      case 'c':
        text[0] = (char)luaL_checkinteger(L, argument);
        count = 1;
        break;
      case 'd': case 'i': case 'u': case 'o': case 'x': case 'X':
        count = snprintf(text, sizeof text, spec, (long long)luaL_checkinteger(L, argument));
        break;
      case 's': {
        size_t value_length;
        const char *value = push_text(L, argument, &value_length);
        if (spec[1] == 's') {
          buffer_add(&b, value, value_length);
        } else {
          if (value_length >= 100 && strchr(spec, '.') == NULL) {
            buffer_add(&b, value, value_length);
          } else {
            if (memchr(value, 0, value_length) != NULL) return raise(L, "string.format: the text contains a zero byte");
            count = snprintf(text, sizeof text, spec, value);
          }
        }
        lua_pop(L, 1);
        break;
      }
      default: count = snprintf(text, sizeof text, spec, luaL_checknumber(L, argument)); break;
    }
    if (count > 0) buffer_add(&b, text, (size_t)count < sizeof text ? (size_t)count : sizeof text - 1);
  }
  buffer_push(&b);
  return 1;
}

static int string_find(lua_State *L) { return pattern_find(L, true); }
static int string_match(lua_State *L) { return pattern_find(L, false); }

static const luaL_Reg functions[] = {
  {"byte", string_byte}, {"char", string_char}, {"find", string_find}, {"format", string_format},
  {"gmatch", pattern_gmatch}, {"gsub", pattern_gsub}, {"len", string_len}, {"lower", string_lower},
  {"match", string_match}, {"rep", string_rep}, {"reverse", string_reverse}, {"sub", string_sub},
  {"upper", string_upper}, {NULL, NULL},
};

void strings_open(lua_State *L) {
  lua_newtable(L);
  add_functions(L, functions);
}
