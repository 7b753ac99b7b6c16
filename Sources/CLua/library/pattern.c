#define _GNU_SOURCE // memmem
// Lua patterns with our own matcher. Each step, including backtracking, is charged, so a pattern that would run for
// years is killed like a loop.
#include "../internal.h"

#define CAPTURES_MAX 32
#define DEPTH_OF_MATCH 200
#define OPEN (-1)     // a capture that is not closed yet
#define POSITION (-2) // a capture of a position

typedef struct {
  lua_State *L;
  const char *source, *source_end, *pattern_end;
  int level, depth;
  uint64_t uncharged;
  struct {
    const char *start;
    ptrdiff_t length;
  } captures[CAPTURES_MAX];
} matcher;

static void step(matcher *m) {
  if (++m->uncharged >= 64) {
    charge(m->L, m->uncharged);
    m->uncharged = 0;
  }
}

static void settle(matcher *m) {
  charge(m->L, m->uncharged);
  m->uncharged = 0;
}

static bool in_range(int c, int low, int high) { return c >= low && c <= high; }

static bool is_of_class(int c, int letter) {
  bool answer;
  switch (letter | 32) {
    case 'a': answer = in_range(c | 32, 'a', 'z'); break;
    case 'c': answer = c < 32 || c == 127; break;
    case 'd': answer = in_range(c, '0', '9'); break;
    case 'g': answer = in_range(c, 33, 126); break;
    case 'l': answer = in_range(c, 'a', 'z'); break;
    case 'p': answer = in_range(c, 33, 126) && !in_range(c | 32, 'a', 'z') && !in_range(c, '0', '9'); break;
    case 's': answer = c == ' ' || in_range(c, 9, 13); break;
    case 'u': answer = in_range(c, 'A', 'Z'); break;
    case 'w': answer = in_range(c | 32, 'a', 'z') || in_range(c, '0', '9'); break;
    case 'x': answer = in_range(c, '0', '9') || in_range(c | 32, 'a', 'f'); break;
    default: return letter == c;
  }
  return in_range(letter, 'A', 'Z') ? !answer : answer;
}

// Returns the end of the single item at p.
static const char *item_end(matcher *m, const char *p) {
  char c = *p++;
  if (c == '%') {
    if (p == m->pattern_end) raise(m->L, "malformed pattern (ends with %%)");
    return p + 1;
  }
  if (c != '[') return p;
  if (p < m->pattern_end && *p == '^') p++;
  do { // the first ] is a literal
    if (p == m->pattern_end) raise(m->L, "malformed pattern (missing ])");
    step(m);
    c = *p++;
    if (c == '%') {
      if (p == m->pattern_end) raise(m->L, "malformed pattern (ends with %%)");
      p++;
    }
  } while (p == m->pattern_end || *p != ']');
  return p + 1;
}

// Whether c is in the set from p ('[') to last (']').
static bool is_in_set(matcher *m, int c, const char *p, const char *last) {
  bool found = true;
  if (p[1] == '^') found = false, p++;
  while (++p < last) {
    step(m);
    if (*p == '%') {
      p++;
      if (is_of_class(c, (unsigned char)*p)) return found;
    } else if (p + 2 < last && p[1] == '-') {
      p += 2;
      if (in_range(c, (unsigned char)p[-2], (unsigned char)*p)) return found;
    } else if ((unsigned char)*p == c) {
      return found;
    }
  }
  return !found;
}

static bool is_single(matcher *m, const char *s, const char *p, const char *end) {
  step(m);
  if (s >= m->source_end) return false;
  int c = (unsigned char)*s;
  switch (*p) {
    case '.': return true;
    case '%': return is_of_class(c, (unsigned char)p[1]);
    case '[': return is_in_set(m, c, p, end - 1);
    default: return (unsigned char)*p == c;
  }
}

static const char *match(matcher *m, const char *s, const char *p);

static const char *match_balance(matcher *m, const char *s, const char *p) {
  if (p + 1 >= m->pattern_end) raise(m->L, "malformed pattern (missing arguments to %%b)");
  if (s >= m->source_end || *s != p[0]) return NULL;
  long depth = 1;
  for (const char *at = s + 1; at < m->source_end; at++) {
    step(m);
    if (*at == p[1]) {
      if (--depth == 0) return at + 1;
    } else if (*at == p[0]) {
      depth++;
    }
  }
  return NULL;
}

static const char *match_longest(matcher *m, const char *s, const char *p, const char *end) {
  ptrdiff_t count = 0;
  while (is_single(m, s + count, p, end)) count++;
  for (; count >= 0; count--) {
    const char *rest = match(m, s + count, end + 1);
    if (rest != NULL) return rest;
  }
  return NULL;
}

static const char *match_shortest(matcher *m, const char *s, const char *p, const char *end) {
  for (;; s++) {
    const char *rest = match(m, s, end + 1);
    if (rest != NULL) return rest;
    if (!is_single(m, s, p, end)) return NULL;
  }
}

static const char *open_capture(matcher *m, const char *s, const char *p, ptrdiff_t what) {
  if (m->level >= CAPTURES_MAX) raise(m->L, "too many captures");
  m->captures[m->level].start = s;
  m->captures[m->level].length = what;
  m->level++;
  const char *rest = match(m, s, p);
  if (rest == NULL) m->level--;
  return rest;
}

static const char *close_capture(matcher *m, const char *s, const char *p) {
  int open = m->level - 1;
  while (open >= 0 && m->captures[open].length != OPEN) open--;
  if (open < 0) raise(m->L, "invalid pattern capture");
  m->captures[open].length = s - m->captures[open].start;
  const char *rest = match(m, s, p);
  if (rest == NULL) m->captures[open].length = OPEN;
  return rest;
}

static const char *match_back_reference(matcher *m, const char *s, int digit) {
  int number = digit - '1';
  if (number < 0 || number >= m->level || m->captures[number].length == OPEN) raise(m->L, "invalid capture index %%%c",
    digit);
  ptrdiff_t length = m->captures[number].length;
  if (length == POSITION) raise(m->L, "invalid capture index %%%c", digit);
  charge(m->L, 1 + (uint64_t)length);
  if (m->source_end - s < length || memcmp(m->captures[number].start, s, (size_t)length) != 0) return NULL;
  return s + length;
}

// Matches `%b`, `%f` or a back reference at *p, and moves *p past it and *s to the end of the match, or to NULL.
// Returns false if *p is another escape.
static bool match_escape(matcher *m, const char **s, const char **p) {
  char kind = (*p)[1];
  if (kind == 'b') {
    *s = match_balance(m, *s, *p + 2);
    *p += 4;
    return true;
  }
  if (kind == 'f') {
    *p += 2;
    if (*p >= m->pattern_end || **p != '[') raise(m->L, "missing [ after %%f in pattern");
    const char *end = item_end(m, *p);
    int before = *s == m->source ? 0 : (unsigned char)(*s)[-1];
    int here = *s < m->source_end ? (unsigned char)**s : 0;
    if (is_in_set(m, before, *p, end - 1) || !is_in_set(m, here, *p, end - 1)) *s = NULL;
    *p = end;
    return true;
  }
  if (!in_range(kind, '0', '9')) return false;
  *s = match_back_reference(m, *s, kind);
  *p += 2;
  return true;
}

// Returns the end of the match of p at s, or NULL.
static const char *match(matcher *m, const char *s, const char *p) {
  if (m->depth-- == 0) raise(m->L, "pattern too complex");
  const char *result = NULL;
  for (;;) {
    step(m);
    if (p == m->pattern_end) {
      result = s;
      break;
    }
    if (*p == '(') {
      bool position = p + 1 < m->pattern_end && p[1] == ')';
      result = open_capture(m, s, position ? p + 2 : p + 1, position ? POSITION : OPEN);
      break;
    }
    if (*p == ')') {
      result = close_capture(m, s, p + 1);
      break;
    }
    if (*p == '$' && p + 1 == m->pattern_end) {
      result = s == m->source_end ? s : NULL;
      break;
    }
    if (*p == '%' && p + 1 < m->pattern_end && match_escape(m, &s, &p)) {
      if (s == NULL) break;
      continue;
    }
    const char *end = item_end(m, p);
    char repeat = end < m->pattern_end ? *end : 0;
    if (repeat == '*') {
      result = match_longest(m, s, p, end);
      break;
    }
    if (repeat == '-') {
      result = match_shortest(m, s, p, end);
      break;
    }
    bool single = is_single(m, s, p, end);
    if (repeat == '+') {
      result = single ? match_longest(m, s + 1, p, end) : NULL;
      break;
    }
    if (repeat == '?') {
      if (single) {
        result = match(m, s + 1, end + 1);
        if (result != NULL) break;
      }
      p = end + 1;
      continue;
    }
    if (!single) break;
    s++;
    p = end;
  }
  m->depth++;
  return result;
}

static const char *begin_match(matcher *m, const char *s, const char *p) {
  m->level = 0;
  m->depth = DEPTH_OF_MATCH;
  return match(m, s, p);
}

// MARK: captures

static void push_capture(matcher *m, int number, const char *s, const char *end) {
  if (number >= m->level) {
    if (number != 0) raise(m->L, "invalid capture index %%%d", number + 1);
    charge(m->L, 1 + (uint64_t)(end - s) / 16);
    lua_pushlstring(m->L, s, (size_t)(end - s)); // no capture: the whole match
    return;
  }
  ptrdiff_t length = m->captures[number].length;
  if (length == OPEN) raise(m->L, "unfinished capture");
  if (length == POSITION) {
    lua_pushinteger(m->L, m->captures[number].start - m->source + 1);
  } else {
    charge(m->L, 1 + (uint64_t)length / 16);
    lua_pushlstring(m->L, m->captures[number].start, (size_t)length);
  }
}

static int push_captures(matcher *m, const char *s, const char *end) {
  int count = m->level == 0 && s != NULL ? 1 : m->level;
  luaL_checkstack(m->L, count + 4, NULL);
  for (int i = 0; i < count; i++) push_capture(m, i, s, end);
  return count;
}

// More than five parameters: the source and the pattern, each with its length.
static void prepare(matcher *m, lua_State *L, const char *source, size_t source_length, const char *pattern,
  size_t pattern_length) {
  memset(m, 0, sizeof *m);
  m->L = L;
  m->source = source;
  m->source_end = source + source_length;
  m->pattern_end = pattern + pattern_length;
}

// MARK: find, match

int pattern_find(lua_State *L, bool find) {
  size_t source_length, pattern_length;
  const char *source = check_text(L, 1, &source_length);
  const char *pattern = check_text(L, 2, &pattern_length);
  lua_Integer from = luaL_optinteger(L, 3, 1);
  if (from < 0) from = (lua_Unsigned)(-(from + 1)) + 1 > source_length ? 1 : (lua_Integer)source_length + from + 1;
  if (from == 0) from = 1;
  if (from > (lua_Integer)source_length + 1) return lua_pushnil(L), 1;
  const char *s = source + from - 1;
  if (find && lua_toboolean(L, 4)) {
    // memmem is linear; nevertheless, each byte is charged as a step.
    charge(L, 1 + (uint64_t)(source + source_length - s) + pattern_length);
    const char *found = pattern_length == 0 ? s : memmem(s, (size_t)(source + source_length - s), pattern,
      pattern_length);
    if (found == NULL) return lua_pushnil(L), 1;
    lua_pushinteger(L, found - source + 1);
    lua_pushinteger(L, found - source + (lua_Integer)pattern_length);
    return 2;
  }
  matcher m;
  prepare(&m, L, source, source_length, pattern, pattern_length);
  bool anchored = pattern_length > 0 && *pattern == '^';
  const char *p = anchored ? pattern + 1 : pattern;
  do {
    const char *end = begin_match(&m, s, p);
    if (end != NULL) {
      settle(&m);
      if (!find) return push_captures(&m, s, end);
      lua_pushinteger(L, s - source + 1);
      lua_pushinteger(L, end - source);
      return push_captures(&m, NULL, NULL) + 2;
    }
  } while (s++ < m.source_end && !anchored);
  settle(&m);
  lua_pushnil(L);
  return 1;
}

// MARK: gmatch

typedef struct {
  size_t next;       // offset into the source
  ptrdiff_t last_end; // of the last match; -1: none
} gmatch_state;

int gmatch_step(lua_State *L) {
  gmatch_state *state = lua_touserdata(L, lua_upvalueindex(3));
  size_t source_length, pattern_length;
  const char *source = lua_tolstring(L, lua_upvalueindex(1), &source_length);
  const char *pattern = lua_tolstring(L, lua_upvalueindex(2), &pattern_length);
  matcher m;
  prepare(&m, L, source, source_length, pattern, pattern_length);
  for (size_t at = state->next; at <= source_length; at++) {
    const char *end = begin_match(&m, source + at, pattern);
    if (end != NULL && end - source != state->last_end) {
      state->next = (size_t)(end - source);
      state->last_end = end - source;
      settle(&m);
      return push_captures(&m, source + at, end);
    }
  }
  state->next = source_length + 1;
  settle(&m);
  return 0;
}

int pattern_gmatch(lua_State *L) {
  size_t length;
  check_text(L, 1, &length);
  check_text(L, 2, &length);
  lua_settop(L, 2);
  gmatch_state *state = lua_newuserdatauv(L, sizeof *state, 0);
  state->next = 0;
  state->last_end = -1;
  lua_pushcclosure(L, gmatch_step, 3);
  return 1;
}

// MARK: gsub

static void add_replacement_text(matcher *m, buffer *b, const char *s, const char *end) {
  size_t length;
  const char *text = lua_tolstring(m->L, 3, &length);
  for (size_t i = 0; i < length; i++) {
    size_t plain = i;
    while (i < length && text[i] != '%') i++;
    if (i > plain) buffer_add(b, text + plain, i - plain);
    if (i >= length) break;
    if (++i >= length) raise(m->L, "invalid use of %% in the replacement");
    if (text[i] == '%') {
      buffer_add(b, "%", 1);
    } else if (text[i] == '0') {
      buffer_add(b, s, (size_t)(end - s));
    } else if (in_range(text[i], '1', '9')) {
      push_capture(m, text[i] - '1', s, end);
      size_t capture_length;
      const char *capture = lua_tolstring(m->L, -1, &capture_length);
      buffer_add(b, capture, capture_length);
      lua_pop(m->L, 1);
    } else {
      raise(m->L, "invalid use of %% in the replacement");
    }
  }
}

static void add_replacement(matcher *m, buffer *b, const char *s, const char *end, int type) {
  lua_State *L = m->L;
  if (type == LUA_TSTRING || type == LUA_TNUMBER) return add_replacement_text(m, b, s, end);
  if (type == LUA_TTABLE) {
    push_capture(m, 0, s, end);
    lua_gettable(L, 3);
  } else {
    lua_pushvalue(L, 3);
    lua_call(L, push_captures(m, s, end), 1);
  }
  if (!lua_toboolean(L, -1)) {
    buffer_add(b, s, (size_t)(end - s));
  } else {
    if (lua_type(L, -1) != LUA_TSTRING && lua_type(L, -1) != LUA_TNUMBER) raise(L,
      "a replacement must be text, not a %s", luaL_typename(L, -1));
    size_t length;
    const char *text = lua_tolstring(L, -1, &length);
    buffer_add(b, text, length);
  }
  lua_pop(L, 1);
}

int pattern_gsub(lua_State *L) {
  size_t source_length, pattern_length;
  const char *source = check_text(L, 1, &source_length);
  const char *pattern = check_text(L, 2, &pattern_length);
  int type = lua_type(L, 3);
  if (type != LUA_TSTRING && type != LUA_TNUMBER && type != LUA_TTABLE && type != LUA_TFUNCTION)
    return raise(L, "string.gsub: the replacement must be a string, a table or a function");
  if (type == LUA_TNUMBER) lua_tolstring(L, 3, NULL);
  lua_Integer most = luaL_optinteger(L, 4, LUA_MAXINTEGER), count = 0;
  lua_settop(L, 4);
  matcher m;
  prepare(&m, L, source, source_length, pattern, pattern_length);
  bool anchored = pattern_length > 0 && *pattern == '^';
  const char *p = anchored ? pattern + 1 : pattern;
  const char *s = source, *last_end = NULL;
  buffer b;
  buffer_begin(&b, L);
  while (count < most) {
    const char *end = begin_match(&m, s, p);
    if (end != NULL && end != last_end) {
      count++;
      settle(&m);
      add_replacement(&m, &b, s, end, type);
      s = last_end = end;
    } else if (s < m.source_end) {
      buffer_add(&b, s++, 1);
    } else {
      break;
    }
    if (anchored) break;
  }
  settle(&m);
  buffer_add(&b, s, (size_t)(m.source_end - s));
  buffer_push(&b);
  lua_pushinteger(L, count);
  return 2;
}
