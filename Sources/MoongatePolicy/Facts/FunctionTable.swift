import MoongateCore
import MoongateSDK

/// The functions of a generation, under names that are stable across generations.
struct FunctionTable: Sendable {
  /// The facts that a function receives.
  enum Audience: Sendable, Hashable {
    /// `send`, `verify` and the functions of `vary` in a policy, with the names of its limits.
    case policy(limits: [String])
    /// `when` of a flow.
    case flow
    /// `decide` of a route.
    case route
    /// `groups` and `claims` of accounts.lua.
    case entitlement
    /// `identity` of a policy, which receives what another site says, as `f.claims`.
    case identity
  }

  struct Entry: Sendable {
    let function: LuaFunction
    let audience: Audience
  }

  private(set) var entries: [FunctionName: Entry] = [:]

  mutating func add(_ name: FunctionName, _ function: LuaFunction, for audience: Audience) {
    entries[name] = Entry(function: function, audience: audience)
  }

  /// The files that contain the functions.
  var files: Set<String> { Set(entries.values.map(\.function.file)) }
}
