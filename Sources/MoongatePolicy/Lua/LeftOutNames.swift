/// The names of Lua that configuration files do not have. `LuaState` passes them to CLua, which adds the hint to the
/// error about the name.
enum LeftOutNames {
  /// By name: why it is left out, or what to use instead.
  static let hints: [(name: String, hint: String)] = [
    ("os", "a policy has no clock; use f.now"),
    ("io", "a policy cannot read files; use env and file in gateway.lua for secrets"),
    ("print", "a policy has no output; the reason of deny is logged"),
    ("next", "use pairs, which iterates in sorted order"),
    ("require", "a file cannot load other files"),
    ("dofile", "a file cannot load other files"),
    ("loadfile", "a file cannot load other files"),
    ("load", "a policy cannot run text as code"),
    ("coroutine", "a policy cannot pause"),
    ("random", "a policy must decide the same for the same facts"),
    ("randomseed", "a policy must decide the same for the same facts"),
    ("_G", "name the global itself"),
    ("setmetatable", "tables have no metatables"),
    ("getmetatable", "tables have no metatables"),
    ("rawget", "tables have no metatables"),
    ("rawset", "tables have no metatables"),
    ("rawequal", "tables have no metatables"),
    ("xpcall", "use pcall"),
    ("debug", "a policy cannot inspect the program that runs it"),
    ("package", "a file cannot load other files"),
    ("collectgarbage", "memory is managed automatically"),
    ("dump", "a policy cannot dump code"),
  ]
}
