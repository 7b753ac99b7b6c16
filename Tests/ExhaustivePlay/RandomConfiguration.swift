import MoongateCore
import MoongateSDK
import MoongateTesting

/// A small random configuration with guarantees: flows with choices, skips and conditions, policy functions and
/// accounts.lua.
struct RandomConfiguration {
  private(set) var files: [String: String]
  let providers: [String]
  /// Functions that read facts with unbounded values: the play has to try both results.
  private(set) var readsAge = false
  private(set) var readsNetwork = false
  /// Whether a new account needs an invitation. The user of a play has one for each flow.
  private(set) var isByInvitation = false
  private let random: Choices

  /// Draws random choices from a seed.
  private struct Choices {
    private let source: SeededRandom

    init(seed: UInt64) { source = SeededRandom(seed: seed) }

    func below(_ bound: Int) -> Int { Int(source.bytes(4).reduce(0) { $0 << 8 | UInt32($1) } % UInt32(bound)) }
    func chance(_ percent: Int) -> Bool { below(100) < percent }
    func one<Element>(of elements: [Element]) -> Element { elements[below(elements.count)] }
    func some<Element>(_ count: Int, of elements: [Element]) -> [Element] {
      var left = elements
      return (0..<min(count, elements.count)).map { _ in left.remove(at: below(left.count)) }
    }
  }

  /// The configuration of a seed. Each free fact is read at most once, so that its values are independent, as the
  /// prover assumes.
  /// - Parameter admits: whether accounts.lua has groups, and `admit`.
  static func make(seed: UInt64, admits: Bool) -> Self {
    var seed = seed
    while true {
      let made = Self(seed: seed, admits: admits)
      let text = made.files.values.joined()
      if ["account.age", "network_changed"].allSatisfy({ text.ranges(of: $0).count <= 1 }) { return made }
      seed = seed &+ 1_000_003
    }
  }

  private init(seed: UInt64, admits: Bool) {
    random = Choices(seed: seed)
    let naming = random.some(1 + random.below(2), of: ["phone_otp", "email_code", "google_oauth", "password"])
    let keeping = random.chance(70) ? ["pin"] : []
    providers = naming + keeping
    files = [:]
    var files: [String: String] = [
      "gateway.lua": """
      return gateway {
        public_url = "http://localhost:8080", region = "IN",
        providers = { \(providers.map { Self.settings($0, seed) }.joined(separator: ", ")) },
      }
      """,
      "routes.lua": "return routes { { path = \"/**\", to = \"http://127.0.0.1:3000\", flow = \"enter\" } }",
    ]
    for name in providers { files["policies/\(name).lua"] = policy(name) }
    // Shipped flows are always the same, so only flows of the seed are played.
    let brought = [
      "phone_otp": ["change_phone"], "email_code": ["verify_email", "change_email"],
      "google_oauth": ["google_oauth_join"],
      "pin": ["pin_set", "pin_change", "pin_disable", "pin_reset", "pin_unlock"],
    ]
    for flow in providers.flatMap({ brought[$0] ?? [] }) {
      files["flows/\(flow).lua"] = "return flow \"\(flow)\" { enabled = false }"
    }
    files["flows/enter.lua"] = flow("enter", naming)
    for name in ["login", "register"] + (naming.contains("password") ? ["register_email"] : []) where random.chance(30)
    {
      files["flows/\(name).lua"] = flow(name, naming)
    }
    if naming.contains("password"), naming.contains("email_code"), random.chance(50) {
      files["flows/password_reset.lua"] = """
        return flow "password_reset" { purpose = "reset", provider = "password", account = "\(random.one(of: ["existing", "any"]))", steps = { { "email_code" }, { "password" } } }
        """
    }
    var rules: [String] = []
    if random.chance(60) {
      rules.append(
        "sign_in = { \((0...random.below(2)).map { _ in step(canSkip: false, naming) }.joined(separator: ", ")) }")
    }
    let requires = rules.isEmpty
    // Drawn from another source, so that every seed keeps its flows.
    if Choices(seed: seed &+ 40).chance(20) {
      let rule = Choices(seed: seed &+ 41).one(of: ["\"invited\"", "{ \"invited\", domains = { \"example.com\" } }"])
      rules.append("registration = \(rule)")
      isByInvitation = true
    }
    files["guarantees.lua"] =
      "return guarantees {\n" + (1...3).map { "  guarantee \"\($0)\" { \(guarantee()) },\n" }.joined() + "}"
    // After everything else, so that a seed has the same flows with and without it.
    if admits { rules += admission(requiring: requires) }
    if !rules.isEmpty { files["accounts.lua"] = "return accounts {\n  \(rules.joined(separator: ",\n  ")),\n}" }
    self.files = files
    let text = files.filter { $0.key != "guarantees.lua" }.values.joined()
    readsAge = text.contains("account.age")
    readsNetwork = text.contains("network_changed")
  }

  /// A third of the configurations identifies users of a password by a name too, and a third by nothing else. The seed
  /// itself decides, so that the other choices do not depend on it.
  private static func settings(_ name: String, _ seed: UInt64) -> String {
    switch name {
    case "password" where seed % 3 == 1: "password = { identify_by = { \"name\", \"email\" } }"
    case "password" where seed % 3 == 2: "password = { identify_by = { \"name\" } }"
    case "phone_otp": "phone_otp = { sms = outbox() }"
    case "email_code": "email_code = { mail = outbox() }"
    default: "\(name) = {}"
    }
  }

  // MARK: policies

  private func policy(_ name: String) -> String {
    let isCode = name == "phone_otp" || name == "email_code"
    var fields = ["limits = { verify = { on = \"verify\", per = \"flow\", max = 100000, window = \"1h\" } }"]
    if isCode { fields.append("timers = { resend_after = { \"1s\" } }") }
    fields.append("unknown_account = \"\(random.one(of: ["reveal", "conceal"]))\"")
    if isCode, random.chance(15) { fields.append("send = \(verdict())") }
    if random.chance(20) { fields.append("verify = \(verdict())") }
    return "return policy \"\(name)\" {\n  \(fields.joined(separator: ",\n  "))\n}"
  }

  private func verdict() -> String {
    let answer = random.chance(70) ? "require_also \"\(random.one(of: providers))\"" : "deny \"no\""
    return "function(f) if \(condition(isBounded: true)) then return \(answer) end return allow end"
  }

  // MARK: flows

  private func flow(_ name: String, _ naming: [String]) -> String {
    let rule =
      switch name {
      case "login": "existing"
      case "register", "register_email": random.chance(80) ? "new" : "any"
      default: "any"
      }
    var steps = [
      "{ any_of { \(random.some(1 + random.below(2), of: naming).map { "\"\($0)\"" }.joined(separator: ", ")) } }"
    ]
    if name == "register_email" { steps[0] = "{ \"password\" }" }
    for _ in 0..<random.below(3) { steps.append(step(canSkip: true, naming)) }
    let purpose =
      switch name {
      case "register": "purpose = \"sign_in\", "
      case "register_email": "purpose = \"register\", provider = \"password\", "
      default: ""
      }
    return
      "return flow \"\(name)\" {\n  \(purpose)account = \"\(rule)\",\n  steps = {\n    \(steps.joined(separator: ",\n    ")),\n  },\n}"
  }

  private func step(canSkip: Bool, _ naming: [String]) -> String {
    let choices = random.some(1 + random.below(2), of: providers).map { "\"\($0)\"" }.joined(separator: ", ")
    var parts = ["any_of { \(choices) }"]
    if canSkip, random.chance(25) { parts.append("skippable = true") }
    if random.chance(45) { parts.append("when = function(f) return \(condition(isBounded: false)) end") }
    return "{ \(parts.joined(separator: ", ")) }"
  }

  private func condition(isBounded: Bool) -> String {
    var facts = [
      "f.account.exists", "f.account.has_pin", "f.client.new_device", "f.account.email_verified", "f.account.has_email",
      "f.account.phone_verified",
      "f.flow.passed.\(random.one(of: providers))", "f.account.factors.pin", "f.flow.name == \"enter\"",
    ]
    if !isBounded, random.chance(12) { facts = ["(f.account.age or 0) > duration(\"30d\")"] }
    if !isBounded, random.chance(8) { facts = ["f.client.network_changed"] }
    let (left, right) = (random.one(of: facts), random.one(of: facts))
    return random.one(of: [
      left, "not (\(left))", "\(left) and \(right)", "\(left) or \(right)", "\(left) and not (\(right))",
    ])
  }

  // MARK: admission

  /// A group with members, one that is computed, and `admit`.
  /// - Parameter requires: whether a step is required of members as well.
  private func admission(requiring requires: Bool) -> [String] {
    let facts = [
      "f.account.has_pin", "f.account.email_verified", "f.account.has_email", "f.account.phone_verified",
      "f.account.factors.pin", "f.account.groups.staff",
    ]
    let (left, right) = (random.one(of: facts), random.one(of: facts))
    let computed = random.one(of: [left, "not (\(left))", "\(left) and \(right)", "\(left) or \(right)"])
    let group = random.one(of: ["f.account.groups.staff", "f.account.groups.able"])
    let refuses = random.one(of: [
      "\(condition(isBounded: true))", "\(group)", "not (\(group))",
      "\(group) and \(condition(isBounded: true))", "\(condition(isBounded: true)) or not (\(group))",
    ])
    var rules = [
      "groups = { staff = members(), able = function(f) return \(computed) end }",
      "admit = function(f) if \(refuses) then return deny \"no\" end return allow end",
    ]
    if requires {
      let choice = random.one(of: providers)
      rules.append("sign_in = { { \"\(choice)\", when = function(f) return \(group) end } }")
    }
    return rules
  }

  // MARK: guarantees

  private func guarantee() -> String {
    var fields: [String] = []
    let drawn = random.some(
      random.below(3), of: ["exists", "has_pin", "has_email", "email_verified", "phone_verified"])
    // A guarantee with a factor that is not configured would be refused.
    let canHavePIN = providers.contains("pin")
    let facts = drawn.filter { canHavePIN || $0 != "has_pin" }
    // True facts of one account never contradict each other.
    if !facts.isEmpty { fields.append("account = { \(facts.map { "\($0) = true" }.joined(separator: ", ")) }") }
    if random.chance(10) { fields = ["account = { exists = false }"] }
    if random.chance(15) { fields = ["account = { \(canHavePIN ? "has_pin = false, " : "")exists = true }"] }
    if random.chance(30) { fields.append("client = { new_device = \(random.chance(50)) }") }
    let one = random.one(of: providers)
    let demand = random.one(of: [
      "factors = 2", "factors = 1", "passed = \"\(one)\"", "passed = \"\(one)\"",
      "passed = any_of { \(random.some(2, of: providers).map { "\"\($0)\"" }.joined(separator: ", ")) }",
      "passed = \"\(one)\", factors = 2",
    ])
    fields.append("session = { \(demand) }")
    let text = fields.joined(separator: ", ")
    return text.contains("exists = false") ? text.replacing("new_device = false", with: "new_device = true") : text
  }
}
