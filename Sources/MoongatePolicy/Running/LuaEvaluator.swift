import CLua
import MoongateCore
import MoongateSDK

/// Runs a generation's functions in its own Lua state. Belongs to one thread at a time.
final class LuaEvaluator: PolicyEvaluator {
  /// A function as it is registered in CLua.
  private struct Loaded {
    let number: Int32
    /// The file whose value contains it.
    let file: String
    let facts: Int32
    let limits: [String]
    let budget: clua_budget
    let location: SourceLocation
  }

  /// The budget of one call. `decide` runs for each request and gets a tenth of it.
  static let decision = clua_budget(steps: 100_000, bytes: 1 << 20, nanoseconds: 10_000_000)
  static let request = clua_budget(steps: 10_000, bytes: 1 << 20, nanoseconds: 1_000_000)
  /// The budget of a group or claim function. There may be hundreds, and they run one after another on an event loop.
  static let entitlement = clua_budget(steps: 10_000, bytes: 1 << 20, nanoseconds: 10_000_000)

  /// The budget of `identity`, which runs once in a sign-in, on claims of up to 64 KiB.
  static let identity = clua_budget(steps: 200_000, bytes: 8 << 20, nanoseconds: 20_000_000)

  private let state: LuaState
  private let answers: LuaCallbacks
  private let providers: Set<ProviderName>
  /// Why the last call failed, if a group needs itself.
  private(set) var cycle: PolicyFault?
  /// The groups that are computed.
  private let groups: [GroupName: FunctionName]
  /// The steps of all runs of one call, and their maximum: with groups, a call is several runs.
  private var spent: UInt64 = 0
  private var mostSteps = 10 * decision.steps
  private var functions: [FunctionName: Loaded] = [:]

  /// A result of `vary` outside its bounds, and the bound that replaces it.
  struct Clamped {
    let function: FunctionName
    let location: SourceLocation
    /// The returned value and the value that is used, in Lua syntax.
    let returned: String
    let taken: String

    var warning: ConfigurationProblem {
      ConfigurationProblem(
        location: location, path: String(function.path.split(separator: ".", maxSplits: 1).last ?? ""),
        message:
          "the function of vary returned \(returned), which is outside its bounds, so \(taken) is taken: "
          + "widen the bounds or change the function")
    }
  }

  /// The clamped result of the last call; nil if the result was within its bounds.
  private(set) var clamped: Clamped?

  /// - Parameter branches: the branches to record. Recording multiplies budgets by ten, because the added calls cost
  ///   steps.
  init(_ generation: Generation, branches: BranchIndex? = nil) throws(PolicyFault) {
    answers = LuaCallbacks(declared: generation.declaredFacts)
    providers = generation.providers
    groups = generation.accounts.groups.compactMapValues { if case .computed(let name) = $0 { name } else { nil } }
    answers.box.groups = (generation.accounts.groups.keys.sorted().map(\.rawValue), Set(groups.keys.map(\.rawValue)))
    if branches != nil { mostSteps *= 10 }
    do { state = try LuaState(answers.callbacks, shared: generation.shared) } catch {
      throw PolicyFault(kind: error.kind, location: nil, message: error.message)
    }
    var numbers: [LuaFunction: Int32] = [:]
    for file in generation.functions.files.sorted() {
      guard let source = generation.sources[file] else { continue }
      do { try state.load(branches?.texts[file] ?? source.bytes, name: file, marks: branches != nil) } catch {
        throw PolicyFault(
          kind: error.kind, location: SourceLocation(file: error.shared ?? file, line: error.line),
          message: error.message)
      }
      // Loading is deterministic: the n-th function of the text has the same number here as when it was read.
      for (index, function) in state.functions.enumerated() {
        let key = LuaFunction(file: file, number: Int32(index), line: function.line, shared: function.shared)
        numbers[key] = function.number
      }
    }
    var facts: [FunctionTable.Audience: Int32] = [:]
    for (name, entry) in generation.functions.entries {
      let location = entry.function.location
      guard let number = numbers[entry.function] else {
        throw PolicyFault(kind: .error, location: location, message: "\(name) no longer exists")
      }
      if facts[entry.audience] == nil, entry.audience != .identity {
        facts[entry.audience] = try Self.makeFacts(entry.audience, generation.declaredFacts, in: state)
      }
      var limits: [String] = []
      if case .policy(let names) = entry.audience { limits = names }
      var budget =
        switch entry.audience {
        case .route: Self.request
        case .entitlement: Self.entitlement
        case .identity: Self.identity
        case .policy, .flow: Self.decision
        }
      if branches != nil {
        budget = clua_budget(steps: budget.steps * 10, bytes: budget.bytes * 10, nanoseconds: budget.nanoseconds * 10)
      }
      functions[name] = Loaded(
        number: number, file: entry.function.file, facts: facts[entry.audience] ?? -1, limits: limits, budget: budget,
        location: location)
    }
  }

  /// Creates the fact table for functions of an audience in a state.
  /// - Parameter declared: the facts that the program's providers declare.
  static func makeFacts(_ audience: FunctionTable.Audience, _ declared: [DeclaredFact], in state: LuaState)
    throws(PolicyFault) -> Int32
  {
    let facts = clua_facts_new(state.pointer)
    var status = facts >= 0 ? CLUA_OK : CLUA_NO_MEMORY
    for slot in FactSlot.allCases where status == CLUA_OK && slot.isAvailable(to: audience) {
      status = clua_facts_add(
        state.pointer, facts, slot.path, slot.rawValue, slot.isSet ? CLUA_FACT_SET : CLUA_FACT_VALUE)
    }
    for (index, fact) in declared.enumerated() where status == CLUA_OK && fact.isAvailable(to: audience) {
      let kind =
        switch fact.kind {
        case .groups, .data: CLUA_FACT_SET
        case .presence: CLUA_FACT_PRESENCE
        case .text, .number, .flag: CLUA_FACT_VALUE
        }
      status = clua_facts_add(state.pointer, facts, fact.path, FactSlot.firstDeclared + Int32(index), kind)
    }
    if case .policy(let limits) = audience {
      for (index, limit) in limits.enumerated() {
        for (offset, field) in ["used", "max", "locked_until"].enumerated() where status == CLUA_OK {
          status = clua_facts_add(
            state.pointer, facts, "limits.\(limit).\(field)", FactSlot.firstLimit + Int32(index * 3 + offset),
            CLUA_FACT_VALUE)
        }
      }
    }
    guard status == CLUA_OK else {
      throw PolicyFault(kind: .memory, location: nil, message: "out of memory: the facts could not be created")
    }
    return facts
  }

  // MARK: calls

  /// - Parameter keepsTable: whether a returned table can be read from the state afterwards.
  private func call<Result>(
    _ name: FunctionName, _ facts: borrowing Facts, keepsTable: Bool = false,
    _ read: (clua_value, SourceLocation) throws(PolicyFault) -> Result
  ) throws(PolicyFault) -> Result {
    guard let function = functions[name] else {
      throw PolicyFault(kind: .error, location: nil, message: "unknown function \(name)")
    }
    clamped = nil
    (spent, cycle) = (0, nil)
    answers.box.forgetGroups()
    let value = try run(function, facts, keepsTable: keepsTable)
    do throws(PolicyFault) { return try read(value, function.location) } catch {
      throw PolicyFault(kind: error.kind, location: error.location, message: redacted(error.message, facts))
    }
  }

  /// Runs a function, and again with the groups of `f.account.groups` that it has read, until it has all of them.
  /// Functions are pure, so the last run decides.
  /// - Parameter open: the groups that are being computed, the outermost first.
  private func run(
    _ function: Loaded, _ facts: borrowing Facts, keepsTable: Bool = false, computing open: [String] = []
  ) throws(PolicyFault) -> clua_value {
    let box = answers.box
    let call = keepsTable ? clua_call_for_table : clua_call
    while true {
      box.limits = function.limits
      box.forgetReads()
      var budget = function.budget
      var value = clua_value()
      let status = withUnsafePointer(to: facts) { facts in
        box.facts = facts
        defer { box.facts = nil }
        return call(state.pointer, function.number, function.facts, &budget, &value)
      }
      spent += clua_steps_used(state.pointer)
      let missing = box.missing.sorted()
      // A run that was stopped is not repeated, whatever it lacked.
      guard status == CLUA_OK || status == CLUA_ERROR && !missing.isEmpty else { throw fault(status, function, facts) }
      if missing.isEmpty { return value }
      guard spent <= mostSteps else {
        throw PolicyFault(kind: .steps, location: function.location, message: "reads too many groups one after another")
      }
      let recording = box.recording
      do throws(PolicyFault) {
        for name in missing where box.memberships[name] == nil {
          box.memberships[name] = try isMember(name, facts, neededBy: function, computing: open)
        }
      } catch {
        box.recording = recording
        throw error
      }
    }
  }

  private func fault(_ status: clua_status, _ function: Loaded, _ facts: borrowing Facts) -> PolicyFault {
    let failure = state.failure(status)
    let place =
      failure.line > 0
      ? SourceLocation(file: failure.shared ?? function.file, line: failure.line) : function.location
    return PolicyFault(
      kind: failure.kind, location: place,
      message: redacted(FaultAdvice.added(to: failure.message), facts))
  }

  /// Whether the account of the facts is in a computed group.
  ///
  /// Attack: a function that fails takes the account out of a group that needs a second factor, or that is not
  /// admitted. Its fault is therefore the fault of the function that reads the group.
  private func isMember(
    _ name: String, _ facts: borrowing Facts, neededBy reader: Loaded, computing open: [String]
  ) throws(PolicyFault) -> Bool {
    guard !open.contains(name) else {
      let fault = PolicyFault(
        kind: .error, location: reader.location, message: EntitlementReader.cycle(open + [name]))
      cycle = fault
      throw fault
    }
    guard let function = GroupName(rawValue: name).flatMap({ groups[$0] }).flatMap({ functions[$0] }) else {
      return false
    }
    defer { answers.box.noteGroup() }
    return try Self.truth(try run(function, facts.ofGroups, computing: open + [name]), function.location)
  }

  /// The message with personal data of the current user redacted.
  ///
  /// Attack (or accident): `error("no " .. f.phone.e164)`. People who read logs may not be allowed to see phone
  /// numbers.
  private func redacted(_ message: String, _ facts: borrowing Facts) -> String {
    answers.box.evidence(copy facts).filter { $0.namesPerson && !$0.value.isEmpty && $0.value != "nil" }.reduce(message)
    {
      $0.replacing($1.value, with: "[redacted]")
    }
  }

  func verdict(of function: FunctionName, given facts: Facts) -> Verdict {
    do {
      return try call(function, facts) { value, location throws(PolicyFault) in
        switch value.kind {
        case CLUA_ALLOW: return .allow
        case CLUA_DENY:
          let reason = Self.text(value)
          if let wrong = DenyReason.problem(of: reason) {
            throw PolicyFault(kind: .result, location: location, message: wrong)
          }
          return .deny(reason)
        case CLUA_REQUIRE_ALSO:
          let name = Self.text(value)
          guard let provider = ProviderName(rawValue: name), providers.contains(provider) else {
            throw PolicyFault(kind: .result, location: location, message: Self.unconfigured(name, among: providers))
          }
          return .requireAlso(provider)
        default: throw Self.wrongResult(value, location, "allow, deny \"reason\" or require_also \"provider\"")
        }
      }
    } catch {
      return .fault(error)
    }
  }

  func admission(of function: FunctionName, given facts: Facts) -> Verdict? {
    let verdict = verdict(of: function, given: facts)
    return answers.box.hasReadBeyond(facts) ? nil : verdict
  }

  /// Starts recording which members of sets functions read.
  func noteSetReads() { answers.box.noteSetReads() }

  /// The facts that the last call read.
  var reads: FactReads { answers.box.reads }

  /// Calls a function only to record its branches and ignores its result.
  func run(_ function: FunctionName, _ facts: Facts) { try? call(function, facts) { _, _ in } }

  /// See `clua_sides_taken`.
  var sidesTaken: [UInt8] {
    var count = 0
    let sides = clua_sides_taken(state.pointer, &count)
    return Array(UnsafeBufferPointer(start: sides, count: count))
  }

  func evidence(of function: FunctionName, given facts: Facts) -> PolicyEvidence? {
    functions[function].map { PolicyEvidence(location: $0.location, facts: answers.box.evidence(facts)) }
  }

  func condition(of function: FunctionName, given facts: Facts) throws(PolicyFault) -> Bool {
    try call(function, facts) { value, location throws(PolicyFault) in try Self.truth(value, location) }
  }

  private static func truth(_ value: clua_value, _ location: SourceLocation) throws(PolicyFault) -> Bool {
    switch value.kind {
    case CLUA_BOOLEAN: return value.boolean
    // Absent members of sets are nil, as in `return f.flow.passed.pin`.
    case CLUA_NIL: return false
    default: throw wrongResult(value, location, "true or false")
    }
  }

  func claim(of function: FunctionName, given facts: Facts) throws(PolicyFault) -> ClaimValue? {
    try call(function, facts) { value, location throws(PolicyFault) in
      switch value.kind {
      case CLUA_NIL: return nil
      case CLUA_BOOLEAN: return .flag(value.boolean)
      case CLUA_INTEGER: return .integer(value.integer)
      case CLUA_NUMBER where value.number.isFinite: return .number(value.number)
      case CLUA_STRING:
        let text = Self.text(value)
        guard text.utf8.count <= ClaimValue.longestText,
          text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && !(0x7f...0x9f).contains($0.value) })
        else {
          throw PolicyFault(
            kind: .result, location: location,
            message: "must return a text of at most \(ClaimValue.longestText) bytes without control characters")
        }
        return .text(text)
      default: throw Self.wrongResult(value, location, "a text, a number, true or false")
      }
    }
  }

  func appClaims(of function: FunctionName, given facts: Facts) throws(PolicyFault) -> [String: JSONClaim] {
    try call(function, facts, keepsTable: true) { value, location throws(PolicyFault) in
      // `if … then return { … } end` without an `else` returns nothing.
      if value.kind == CLUA_NIL { return [:] }
      guard value.kind == CLUA_TABLE else {
        throw Self.wrongResult(value, location, "a table of claims, as in { role = \"Admin\" }")
      }
      do throws(AppClaimsResult.Problem) {
        return try AppClaimsResult.read(state.tree(file: location.file, map: nil))
      } catch {
        throw PolicyFault(kind: .result, location: location, message: error.message)
      }
    }
  }

  func identity(of function: FunctionName, from claims: [String: JSONClaim]) throws(PolicyFault) -> IdentityVerdict {
    guard let loaded = functions[function] else {
      throw PolicyFault(kind: .error, location: nil, message: "unknown function \(function)")
    }
    let argument = LuaArgument(["claims": .object(claims)])
    do throws(LuaState.Failure) {
      let result = try state.apply(loaded.number, to: argument, loaded.budget, file: loaded.location.file)
      return try IdentityResult.read(result)
    } catch {
      let line = error.line > 0 ? error.line : loaded.location.line
      throw PolicyFault(
        kind: error.kind, location: SourceLocation(file: loaded.location.file, line: line),
        message: argument.redacted(FaultAdvice.added(to: error.message)))
    }
  }

  func value(of varying: Varying<Int>, given facts: Facts) throws(PolicyFault) -> Int {
    switch varying {
    case .fixed(let value): return value
    case .varying(let lowest, let highest, let function):
      return try call(function, facts) { value, location throws(PolicyFault) in
        let (result, isWithin): (Int, Bool)
        switch value.kind {
        case CLUA_INTEGER:
          result = Int(min(Int64(highest), max(Int64(lowest), value.integer)))
          isWithin = Int64(result) == value.integer
        case CLUA_NUMBER where !value.number.isNaN:
          result = Int(min(Double(highest), max(Double(lowest), value.number.rounded(.down))))
          isWithin = (Double(lowest)...Double(highest)).contains(value.number)
        default: throw Self.wrongResult(value, location, "a number from \(lowest) to \(highest)")
        }
        if !isWithin {
          clamped = Clamped(
            function: function, location: location, returned: Self.described(value), taken: String(result))
        }
        return result
      }
    }
  }

  func value(of varying: Varying<Duration>, given facts: Facts) throws(PolicyFault) -> Duration {
    switch varying {
    case .fixed(let value): return value
    case .varying(let lowest, let highest, let function):
      return try call(function, facts) { value, location throws(PolicyFault) in
        let (result, isWithin): (Duration, Bool)
        switch value.kind {
        case CLUA_STRING:
          guard let duration = Field.duration(Self.text(value)) else { throw Self.noDuration(value, location) }
          result = min(highest, max(lowest, duration))
          isWithin = result == duration
        case CLUA_INTEGER, CLUA_NUMBER:
          // Seconds, as duration() returns them. They are clamped before the conversion, which traps outside its range.
          guard !value.number.isNaN else { throw Self.noDuration(value, location) }
          let seconds = min(Self.seconds(highest), max(Self.seconds(lowest), value.number))
          result = min(highest, max(lowest, .milliseconds(Int64((seconds * 1000).rounded(.down)))))
          isWithin = seconds == value.number
        default: throw Self.noDuration(value, location)
        }
        if !isWithin {
          clamped = Clamped(
            function: function, location: location, returned: Self.described(value), taken: "\"\(result.asWritten)\"")
        }
        return result
      }
    }
  }

  private static func noDuration(_ value: clua_value, _ location: SourceLocation) -> PolicyFault {
    wrongResult(value, location, "a duration, such as \"15m\" or duration(\"15m\")")
  }

  private static func seconds(_ duration: Duration) -> Double { Double(duration.wholeMilliseconds) / 1000 }

  private static func wrongResult(_ value: clua_value, _ location: SourceLocation, _ due: String) -> PolicyFault {
    PolicyFault(
      kind: .result, location: location,
      message: "must return \(due), but returned \(described(value))\(FaultAdvice.of(value.kind))")
  }

  private static func described(_ value: clua_value) -> String {
    switch value.kind {
    case CLUA_NIL: "nothing"
    case CLUA_BOOLEAN: "\(value.boolean)"
    case CLUA_INTEGER: "the number \(value.integer)"
    case CLUA_NUMBER: "the number \(value.number)"
    case CLUA_STRING: "the text \"\(String(text(value).prefix(60)))\""
    case CLUA_ALLOW: "allow"
    case CLUA_DENY: "deny"
    case CLUA_REQUIRE_ALSO: "require_also"
    default: "a \(text(value))"
    }
  }

  private static func text(_ value: clua_value) -> String {
    guard let bytes = value.bytes else { return "" }
    return String(decoding: UnsafeRawBufferPointer(start: bytes, count: value.length), as: UTF8.self)
  }

  /// The problem with a `require_also` that names an unconfigured provider.
  static func unconfigured(_ name: String, among providers: Set<ProviderName>) -> String {
    "require_also names `\(name)`, which gateway.lua does not configure\(Suggestion.phrase(for: name, among: providers.map(\.rawValue)))"
  }
}
