// Suggestions: the known name that is most similar to a word.
#include <stdio.h>

#include "../internal.h"

#define WORD_MAX 64

int32_t clua_typing_distance(const char *left, size_t left_length, const char *right, size_t right_length) {
  if (left_length >= WORD_MAX || right_length >= WORD_MAX) return WORD_MAX;
  // Optimal string alignment. Three rows are enough, because a swap looks two rows back.
  int rows[3][WORD_MAX];
  int *before = rows[0], *above = rows[1], *row = rows[2];
  for (size_t j = 0; j <= right_length; j++) above[j] = (int)j;
  for (size_t i = 1; i <= left_length; i++) {
    row[0] = (int)i;
    for (size_t j = 1; j <= right_length; j++) {
      int cost = left[i - 1] == right[j - 1] ? 0 : 1;
      int best = above[j - 1] + cost;
      if (above[j] + 1 < best) best = above[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] &&
        before[j - 2] + 1 < best) best = before[j - 2] + 1;
      row[j] = best;
    }
    int *spare = before;
    before = above, above = row, row = spare;
  }
  return above[right_length];
}

void push_suggestion(lua_State *L, int index, const char *word, size_t length) {
  index = lua_absindex(L, index);
  const char *best = NULL;
  int32_t best_distance = length <= 3 ? 1 : length <= 7 ? 2 : 3;
  lua_pushnil(L);
  while (lua_next(L, index)) {
    lua_pop(L, 1);
    if (lua_type(L, -1) != LUA_TSTRING) continue;
    size_t candidate_length;
    const char *candidate = lua_tolstring(L, -1, &candidate_length);
    charge(L, 1);
    if (candidate[0] == '_') continue;
    int32_t distance = clua_typing_distance(word, length, candidate, candidate_length);
    // Of equally similar names, takes the first in alphabetical order. The order of the table differs between
    // processes.
    if (distance < best_distance || (distance == best_distance && (best == NULL || strcmp(candidate, best) < 0)))
      best = candidate, best_distance = distance;
  }
  if (best != NULL)
    lua_pushfstring(L, "; did you mean `%s`?", best);
  else
    lua_pushliteral(L, "");
}

void push_names(lua_State *L, int index) {
  index = lua_absindex(L, index);
  push_sorted_keys(L, index);
  char text[384];
  size_t length = 0;
  lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
  for (lua_Integer i = 1; i <= count; i++) {
    lua_rawgeti(L, -1, i);
    size_t name_length = 0;
    const char *name = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &name_length) : "";
    bool fits = length + name_length + 16 < sizeof text;
    const char *before = i == 1 ? "; available: " : i == count || !fits ? " and " : ", ";
    length += (size_t)snprintf(text + length, sizeof text - length, fits ? "%s`%s`" : "%smore", before, name);
    lua_pop(L, 1);
    charge(L, 1);
    if (!fits) break;
  }
  lua_pushlstring(L, text, length);
  lua_remove(L, -2);
}
