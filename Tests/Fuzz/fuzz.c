// Mutated scripts against the sandbox, under AddressSanitizer and UndefinedBehaviorSanitizer: `make fuzz`.
//
// usage: fuzz ROUNDS SECONDS SEED CORPUS...
// Each round takes a script of the corpus, mutates it, loads it, and calls its functions twice. It fails where the
// second call does not answer as the first did, where a run outlives its budget by far, and where memory grows; a
// sanitizer stops it at anything else. The same seed makes the same scripts, and the script at fault is printed.
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "CLua.h"

#define SCRIPT_MAX 8192
#define CORPUS_MAX 256
// One state serves so many scripts, so that what one leaves behind can hurt the next.
#define SCRIPTS_PER_STATE 50

static uint64_t seed;

// xorshift64* (Marsaglia; Vigna 2016).
static uint32_t random_below(uint32_t bound) {
  seed ^= seed >> 12, seed ^= seed << 25, seed ^= seed >> 27;
  return (uint32_t)((seed * UINT64_C(0x2545F4914F6CDD1D) >> 32) % bound);
}

static const char *const pieces[] = {
  "{", "}", "(", ")", "[", "]", "\"", "'", "--", "[[", "]]", "[==[", "=", "==", "~=", "//", "<<", "~", ",", ";", "..",
    "...", "#", "%", "\\", "\n",
  "function(f)", "end", "return", "nil", "local", "while true do", "repeat", "until false", "for i = 1, 1e9 do",
    "for k, v in pairs(t) do", "goto x",
  "::x::", "<close>", "<const>", "0", "-1", "1e999", "0/0", "0x7fffffffffffffff", "math.mininteger", "math.maxinteger",
    "math.huge", "_ENV", "f", "f.limits",
  "f.set.x", "pcall(", "error(", "select('#', ", "table.unpack(t, 1, 9000)", "table.move(t, 1, 1 << 40, 2)",
    "table.sort(t, function(a, b) return true end)",
  "table.concat(t, s)", "table.insert(t, 1, t)", "table.remove(t)", "string.rep('x', 1e9)", "s:rep(1 << 20)",
    "s:gsub('.', f)", "s:gsub('%w*', '%0%1')",
  "s:find('.-.-.-b')", "s:match('^(.*)%1$')", "s:gmatch('%f[%w]()')", "('%99.99f'):format(1e300)", "('%q'):format(s)",
    "s:byte(1, -1)", "s .. s", "s < t",
  "tostring(t)", "tonumber(s, 36)", "glob(s, '*a*b*')", "cidr('::/0', s)", "hour(f.now, 'UTC')", "duration(s)",
    "one_of(s, t)", "contains(s, s)",
  "setmetatable({}, {})", "policy 'x' {", "vary(1, 2, function() end)", "allow", "deny 'x'", "require_also 'y'",
    "any_of {", "env 'X'", "{{{{{{{{", "((((((((",
};

typedef struct {
  char bytes[SCRIPT_MAX];
  size_t length;
} script;

static script corpus[CORPUS_MAX];
static uint32_t corpus_count;

static void splice(script *s, size_t at, size_t removed, const char *bytes, size_t length) {
  if (at > s->length) at = s->length;
  if (removed > s->length - at) removed = s->length - at;
  if (s->length - removed + length > SCRIPT_MAX) return;
  memmove(s->bytes + at + length, s->bytes + at + removed, s->length - at - removed);
  memcpy(s->bytes + at, bytes, length);
  s->length = s->length - removed + length;
}

static void mutate(script *s) {
  for (uint32_t count = 1 + random_below(1 + random_below(4)); count > 0; count--) {
    size_t at = random_below((uint32_t)s->length + 1), length = random_below(24);
    const char *piece = pieces[random_below(sizeof pieces / sizeof *pieces)];
    char byte = (char)random_below(256);
    switch (random_below(7)) {
      case 0: splice(s, at, length, "", 0); break;
      case 1: splice(s, at, 0, piece, strlen(piece)); break;
      case 2: splice(s, at, length, piece, strlen(piece)); break;
      case 3: splice(s, at, 1, &byte, 1); break;
      case 4: {
        char copy[64];
        size_t from = random_below((uint32_t)s->length + 1), count = random_below(sizeof copy);
        if (count > s->length - from) count = s->length - from;
        memcpy(copy, s->bytes + from, count);
        splice(s, at, 0, copy, count);
        break;
      }
      case 5: {
        const script *other = &corpus[random_below(corpus_count)];
        size_t from = random_below((uint32_t)other->length + 1), count = random_below(200);
        if (count > other->length - from) count = other->length - from;
        splice(s, at, length, other->bytes + from, count);
        break;
      }
      default: if (random_below(8) == 0) s->length = at;
    }
  }
}

static int fact(void *context, int32_t slot, const char *key, size_t key_length, int64_t index, clua_value *value) {
  (void)context, (void)key_length;
  static const char *const members[] = {"pin", "x"};
  switch (slot) {
    case 0: value->kind = CLUA_INTEGER, value->integer = 1790000000; return 0;
    case 1: value->kind = CLUA_STRING, value->bytes = "IN", value->length = 2; return 0;
    case 2: value->kind = CLUA_BOOLEAN, value->boolean = true; return 0;
    case 3: value->bytes = "this fact is refused", value->length = 20; return 1;
    default:
      if (key != NULL) value->kind = CLUA_BOOLEAN, value->boolean = key[0] == 'x';
      else if (index >= 0 && index < 2) value->kind = CLUA_STRING, value->bytes = members[index],
        value->length = strlen(members[index]);
      return 0;
  }
}

static int hour(void *context, int64_t seconds, const char *zone, size_t zone_length, clua_value *value) {
  (void)context;
  if (zone_length != 3 || memcmp(zone, "UTC", 3) != 0) return value->bytes = "no such zone", value->length = 12, 1;
  value->kind = CLUA_INTEGER, value->integer = (seconds / 3600 % 24 + 24) % 24;
  return 0;
}

static clua_state *new_state(int32_t *facts) {
  const clua_callbacks callbacks = {NULL, fact, hour, NULL};
  clua_state *state = clua_new(&callbacks);
  static const clua_constructor words[] = {
    {"policy", CLUA_TAKES_NAME}, {"routes", CLUA_TAKES_TABLE}, {"any_of", CLUA_TAKES_TABLE}, {"env", CLUA_TAKES_TEXT},
      {"members", CLUA_TAKES_NOTHING},
    {"send", CLUA_TAKES_TABLE_OR_NOTHING}, {"wait", CLUA_TAKES_TEXT_OR_TABLE},
      {"vary", CLUA_TAKES_BOUNDS_AND_FUNCTION},
  };
  if (state != NULL && clua_constructors_add(state, words, sizeof words / sizeof *words) != CLUA_OK) abort();
  static const clua_hint hints[] = {{"os", "there is no clock"}, {"print", "there is no output"}};
  if (state != NULL && clua_hints_add(state, hints, sizeof hints / sizeof *hints) != CLUA_OK) abort();
  if (state == NULL) return NULL;
  *facts = clua_facts_new(state);
  static const char *const paths[] = {"now", "phone.country", "client.new_device", "limits.verify.used"};
  for (int32_t slot = 0; slot < 4; slot++) clua_facts_add(state, *facts, paths[slot], slot, CLUA_FACT_VALUE);
  clua_facts_add(state, *facts, "set", 100, CLUA_FACT_SET);
  return state;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void fail(const char *what, uint64_t round, const script *s) {
  fprintf(stderr, "round %" PRIu64 ": %s\n--- the script:\n%.*s\n---\n", round, what, (int)s->length, s->bytes);
  exit(1);
}

// The whole answer as one number: how it ended, and with what.
static uint64_t answer(clua_state *state, int32_t function, int32_t facts, clua_status *status) {
  static const clua_budget budget = {100000, 1 << 20, 0}; // no time: what is slow here is the sanitizer
  clua_value value;
  memset(&value, 0, sizeof value);
  *status = clua_call(state, function, facts, &budget, &value);
  uint64_t hash = (uint64_t)*status * 31 + (uint64_t)clua_line(state);
  const char *bytes = *status == CLUA_OK ? value.bytes : clua_message(state);
  size_t length = *status == CLUA_OK ? value.length : strlen(bytes);
  if (*status == CLUA_OK) hash = hash * 31 + (uint64_t)value.kind * 7 + (uint64_t)value.integer + value.boolean;
  for (size_t i = 0; bytes != NULL && i < length; i++) hash = hash * 31 + (unsigned char)bytes[i];
  return hash;
}

static void read_corpus(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL || corpus_count == CORPUS_MAX) {
    perror(path);
    exit(2);
  }
  script *s = &corpus[corpus_count++];
  s->length = fread(s->bytes, 1, SCRIPT_MAX, file);
  fclose(file);
}

int main(int argc, char **argv) {
  if (argc < 5) return fputs("usage: fuzz ROUNDS SECONDS SEED CORPUS...\n", stderr), 2;
  uint64_t rounds = strtoull(argv[1], NULL, 10);
  double seconds = strtod(argv[2], NULL);
  seed = strtoull(argv[3], NULL, 10) * 2 + 1;
  for (int i = 4; i < argc; i++) read_corpus(argv[i]);

  static const clua_budget loading = {500000, 8 << 20, 0};
  uint64_t loaded = 0, ended[8] = {0};
  double start = now(), slowest = 0;
  int32_t facts = -1;
  clua_state *state = NULL;
  uint64_t round = 0;
  for (; round < rounds && now() - start < seconds; round++) {
    if (round % SCRIPTS_PER_STATE == 0) {
      clua_free(state);
      state = new_state(&facts);
      if (state == NULL) return fputs("no memory\n", stderr), 2;
    }
    script s = corpus[random_below(corpus_count)];
    mutate(&s);
    // What is read must be exactly what is given: a copy without a byte to spare.
    char *exact = malloc(s.length > 0 ? s.length : 1);
    memcpy(exact, s.bytes, s.length);
    double before = now();
    clua_status status = clua_load(state, "policies/fuzz.lua", exact, s.length, &loading, false);
    free(exact);
    if (status == CLUA_OK) {
      loaded++;
      int32_t functions[4], count = 0;
      for (size_t i = 0; i < clua_tree_count(state) && count < 4; i++)
        if (clua_tree_nodes(state)[i].function >= 0) functions[count++] = clua_tree_nodes(state)[i].function;
      for (int32_t i = 0; i < count; i++) {
        clua_status first, second;
        uint64_t once = answer(state, functions[i], facts, &first);
        uint64_t steps = clua_steps_used(state);
        uint64_t again = answer(state, functions[i], facts, &second);
        if (once != again) fail("the same call gave another answer", round, &s);
        if (first == CLUA_OK && steps != clua_steps_used(state)) fail("the same call took other steps", round, &s);
        ended[first]++;
      }
    }
    double took = now() - before;
    if (took > slowest) slowest = took;
    if (took > 20) fail("took more than 20 s", round, &s);
    if (clua_bytes_held(state) > (64 << 20)) fail("the state holds more than 64 MiB", round, &s);
  }
  clua_free(state);
  printf(
    "%" PRIu64 " scripts in %.0f s, %" PRIu64 " loaded; calls: %" PRIu64 " answered, %" PRIu64 " errors, killed by steps %" PRIu64 ", by memory %" PRIu64
    "; the slowest script %.0f ms\n",
    round, now() - start, loaded, ended[CLUA_OK], ended[CLUA_ERROR], ended[CLUA_KILLED_STEPS],
      ended[CLUA_KILLED_MEMORY], slowest * 1000);
  return loaded > 0 ? 0 : 1;
}
