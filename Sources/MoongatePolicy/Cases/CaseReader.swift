import MoongateCore
import MoongateSDK

/// Reads tests/NAME.lua.
struct CaseReader {
  let flows: [String]
  /// Flows that are left out because gateway.lua does not configure their providers.
  var absent: Set<String> = []
  /// The provider that ships the cases; nil for an operator's cases. Shipped cases for missing flows are left out.
  var origin: ProviderName?
  /// The host of requests without `host`; nil if gateway.lua could not be read.
  let host: String?
  /// The groups of accounts.lua; nil if it could not be read.
  var groups: [GroupName: GroupDefinition]? = [:]
  /// The statements of guarantees.lua; nil if it could not be read.
  var statements: [String]? = []
  /// The apps of apps.lua; nil if it could not be read.
  var apps: AppTable? = AppTable.none
  /// Collects the flows that do not exist; nil for shipped cases.
  var missing: MissingFlows?
  let providers: ProviderCatalog
  let problems: Problems

  /// The acts of a case with an example of each, for messages.
  private static let words = [
    "flow \"login\"", "phone \"+91…\"", "email \"…\"", "account { … }", "group \"…\"", "invited()", "client { … }",
    "provider \"…\"",
    "undeliverable \"…\"",
    "clock \"…\"",
    "token \"…\"", "guarantee \"…\"", "send()", "resend()",
    "wrong()", "right()",
    "enter { … }", "skip()", "request { … }", "app \"…\"", "expect { … }", "wait \"15m\"",
  ]

  /// A table without fields.
  private static let list = TableShape(name: "List", summary: "", entries: [])

  /// - Parameter node: the table of `tests { … }`.
  func read(_ node: LuaNode) -> [PolicyCase] {
    guard let reader = TableReader(node, Self.list, path: "", problems: problems, allowsItems: true) else { return [] }
    var cases: [PolicyCase] = []
    for item in reader.items {
      guard case .tagged("case", let arguments) = item.value, arguments.count == 2,
        case .text(let name) = arguments[0].value
      else {
        problems.add(item.location, "", "must be case \"what it shows\" { … }, not \(item.value.described)")
        continue
      }
      guard let plain = Field.text(LuaNode(value: .text(name), location: item.location), "", problems), !plain.isEmpty
      else { continue }
      if let twin = cases.first(where: { $0.name == plain }) {
        problems.add(
          item.location, "",
          "case \"\(plain)\" already exists at line \(twin.location.line): give each case its own name"
        )
      }
      let before = problems.all.count
      let acts = acts(arguments[1])
      if problems.all.count == before, !acts.contains(where: { $0.kind.isDemand }) {
        problems.add(
          item.location, "", "case \"\(plain)\" has no expectation, so it could never fail: end it with expect { … }")
      }
      cases.append(PolicyCase(name: plain, location: item.location, acts: acts, origin: origin))
    }
    return cases
  }

  private func acts(_ node: LuaNode) -> [PolicyCase.Act] {
    guard let reader = TableReader(node, Self.list, path: "", problems: problems, allowsItems: true) else { return [] }
    if reader.items.isEmpty {
      problems.add(node.location, "", "a case must be a list of acts; available: \(Self.words.joined(separator: ", "))")
    }
    var hasFlow = false
    var hasAnswer = false
    return reader.items.compactMap { item in
      // Errors that follow from a missing flow are not reported again.
      if case .tagged("flow", _) = item.value { (hasFlow, hasAnswer) = (true, true) }
      guard let kind = kind(item) else { return nil }
      switch kind {
      case .request, .app, .guarantee: hasAnswer = true
      case .send, .resend, .wrong, .right, .enter, .skip:
        guard hasFlow else {
          problems.add(item.location, "", "must follow a flow: begin with flow \"login\"")
          hasFlow = true
          return nil
        }
      case .expect where !hasAnswer:
        problems.add(item.location, "expect", "there is no answer yet: put it after the act that it checks")
        return nil
      default: break
      }
      return PolicyCase.Act(kind: kind, location: item.location)
    }
  }

  private func kind(_ node: LuaNode) -> PolicyCase.Kind? {
    guard case .tagged(let word, let arguments) = node.value else {
      let got = if case .other = node.value { "a word without its (), text or table" } else { node.value.described }
      problems.add(node.location, "", "\(got) is not an act; available: \(Self.words.joined(separator: ", "))")
      return nil
    }
    let argument = arguments.first.map { LuaNode(value: $0.value, location: node.location) }
    switch (word, argument) {
    case ("flow", let argument?) where arguments.count == 1: return flow(argument)
    case ("phone", let argument?): return Field.text(argument, word, problems).map { .identifier(.phone, $0) }
    case ("email", let argument?): return Field.text(argument, word, problems).map { .identifier(.email, $0) }
    case ("provider", let argument?): return provider(argument, word).map { .provider($0) }
    case ("undeliverable", let argument?): return provider(argument, word).map { .undeliverable($0) }
    case ("account", let argument?): return account(argument).map { .account($0) }
    case ("group", let argument?): return memberships(argument).map { .groups($0) }
    case ("invited", let argument): return invitation(argument).map { .invited($0) }
    case ("clock", let argument?): return clock(argument)
    case ("token", let argument?): return token(argument).map { .token($0) }
    case ("guarantee", let argument?) where arguments.count == 1: return guarantee(argument)
    case ("client", let argument?): return client(argument).map { .client($0) }
    case ("send", let argument): return untilSent(argument, word).map { .send(untilSent: $0) }
    case ("resend", let argument): return untilSent(argument, word).map { .resend(untilSent: $0) }
    case ("wrong", let argument): return wrongAttempts(argument).map { .wrong($0) }
    case ("right", _): return .right
    case ("enter", let argument?): return entered(argument).map { .enter($0) }
    case ("skip", _): return .skip
    case ("request", let argument?): return request(argument).map { .request($0) }
    case ("app", let argument?): return appSignIn(argument, arguments.dropFirst().first).map { .app($0) }
    case ("expect", let argument?): return expectation(argument).map { .expect($0) }
    case ("wait", let argument?): return wait(argument).map { .wait($0) }
    default:
      problems.add(
        node.location, "", "`\(word)` is not an act of a case; available: \(Self.words.joined(separator: ", "))")
      return nil
    }
  }

  private func flow(_ node: LuaNode) -> PolicyCase.Kind? {
    guard let name = Field.text(node, "flow", problems) else { return nil }
    guard flows.contains(name) || absent.contains(name) || origin != nil else {
      missing?.add(name, at: node.location)
      return nil
    }
    return .flow(name)
  }

  private func provider(_ node: LuaNode, _ path: String) -> ProviderName? {
    guard let text = Field.text(node, path, problems) else { return nil }
    if let name = providers.known(text) { return name }
    problems.add(
      node.location, path, "unknown provider \"\(text)\"\(Suggestion.phrase(for: text, among: providers.names))")
    return nil
  }

  private func account(_ node: LuaNode) -> PolicyCase.AccountSetup? {
    guard let reader = TableReader(node, .caseAccount, path: "account", problems: problems) else { return nil }
    var account = PolicyCase.AccountSetup()
    account.exists = reader.flag("exists") ?? true
    account.age = reader.duration("age") ?? .zero
    account.idle = reader.duration("idle") ?? .zero
    account.phone = reader.text("phone")
    account.email = reader.text("email")
    account.isPhoneVerified = reader.flag("phone_verified") ?? true
    account.isEmailVerified = reader.flag("email_verified") ?? true
    account.hasPIN = reader.flag("has_pin") ?? false
    account.pin = reader.text("pin")
    account.password = reader.text("password")
    account.isLocked = reader.flag("locked") ?? false
    if let node = reader.take("factors"),
      let factors = TableReader(node, nil, path: "account.factors", problems: problems)
    {
      for name in factors.names {
        guard let node = factors.take(name), let secret = factors.text(name),
          let provider = provider(LuaNode(value: .text(name), location: node.location), factors.path(name))
        else { continue }
        account.factors[provider] = secret
      }
    }
    return account
  }

  private func client(_ node: LuaNode) -> PolicyCase.ClientSetup? {
    guard let reader = TableReader(node, .caseClient, path: "client", problems: problems) else { return nil }
    var client = PolicyCase.ClientSetup()
    if let field = reader.take("ip"), let text = Field.text(field, "client.ip", problems) {
      client.address = IPAddressText.parse(Array(text.utf8))
      if client.address == nil {
        problems.add(
          field.location, "client.ip", "\"\(text)\" is not an IP address, such as \"203.0.113.7\" or \"2001:db8::1\"")
      }
    }
    if let field = reader.take("country"), let text = Field.text(field, "client.country", problems) {
      client.country = text
      if !CountryCode.contains(text) {
        problems.add(
          field.location, "client.country",
          "\"\(text)\" is not a country code of two capital letters (ISO 3166-1)"
            + (CountryCode.suggestion(for: text).map { "; did you mean `\($0)`?" } ?? ", such as \"IN\""))
      }
    }
    client.asn = reader.whole("asn", in: 0...Int(UInt32.max))
    client.userAgent = reader.text("user_agent")
    client.device = reader.text("device")
    client.isKnown = reader.flag("known")
    client.remember = reader.flag("remember")
    if let known = client.isKnown, client.device != nil {
      problems.add(
        reader.explicitValue("known")?.location ?? node.location, "client.known",
        "`known = \(known)` and `device` cannot be combined: a device with a name is known once it has signed in")
    }
    return client
  }

  private func untilSent(_ node: LuaNode?, _ word: String) -> Bool? {
    guard let node else { return false }
    guard let reader = TableReader(node, .caseSend, path: word, problems: problems) else { return nil }
    let untilSent = reader.flag("until_sent") ?? false
    return untilSent
  }

  private func wrongAttempts(_ node: LuaNode?) -> PolicyCase.WrongAttempts? {
    guard let node else { return .times(1) }
    guard let reader = TableReader(node, .caseWrong, path: "wrong", problems: problems) else { return nil }
    let untilLocked = reader.flag("until_locked") ?? false
    let times = reader.whole("times", in: 1...10_000)
    if untilLocked, times != nil {
      problems.add(node.location, "wrong", "`until_locked` and `times` cannot be combined")
    }
    return untilLocked ? .untilLocked : .times(times ?? 1)
  }

  private func wait(_ node: LuaNode) -> PolicyCase.Wait? {
    guard case .table = node.value else { return Field.duration(node, "wait", problems).map { .duration($0) } }
    guard let reader = TableReader(node, .caseWait, path: "wait", problems: problems) else { return nil }
    let waits: [(PolicyCase.Wait, Bool)] = [
      (.untilUnlocked, reader.flag("until_unlocked") ?? false),
      (.untilResend, reader.flag("until_resend") ?? false),
      (.untilExpired, reader.flag("until_expired") ?? false),
    ]
    let meant = waits.filter(\.1).map(\.0)
    if meant.count == 1 { return meant[0] }
    problems.add(
      node.location, "wait",
      "write wait \"15m\", or one of wait { until_unlocked = true }, until_resend and until_expired")
    return nil
  }

  private func expectation(_ node: LuaNode) -> PolicyCase.Expectation? {
    guard let reader = TableReader(node, .caseExpect, path: "expect", problems: problems) else { return nil }
    if reader.names.isEmpty {
      problems.add(node.location, "expect", "is empty; write, for example, expect { status = 429 }")
    }
    var expected = PolicyCase.Expectation()
    if let field = reader.take("status") {
      switch field.value {
      case .text("refused"): expected.status = .refused
      case .text(let text) where FlowRecord.Status(rawValue: text) != nil:
        expected.status = FlowRecord.Status(rawValue: text).map { .flow($0) }
      case .text(let text):
        let names = ["pending", "complete", "failed", "refused"]
        problems.add(
          field.location, "expect.status",
          "\"\(text)\" is not a status\(Suggestion.phrase(for: text, among: names)), or a number such as 429")
      default: expected.status = Field.whole(field, "expect.status", problems, in: 200...599).map { .http($0) }
      }
    }
    expected.code = reader.text("code")
    expected.retryAfter = reader.duration("retry_after")
    expected.attemptsLeft = reader.whole("attempts_left", in: 0...1_000_000)
    expected.resendsLeft = reader.whole("resends_left", in: 0...1_000_000)
    expected.field = reader.text("field")
    expected.messages = reader.whole("messages", in: 0...1_000_000)
    expected.step = reader.take("step").flatMap { provider($0, "expect.step") }
    expected.isLocked = reader.flag("locked")
    expected.isWaiting = reader.flag("waiting")
    expected.next = reader.text("next")
    expected.claims = expectedClaims(reader)
    return expected
  }
}
