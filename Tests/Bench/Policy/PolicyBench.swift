import CBareLua
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateSDK

/// What policies cost: `make bench-policy`. Exits with 1 where a figure is above its bound.
@main enum PolicyBench {
  private static let calls = 200_000
  private static let condition = """
    if f.phone.country ~= "IN" then return DENY end
      if f.client.new_device and f.account.age < 86400 then return DENY end
      if f.client.network_changed and not f.account.has_pin then return DENY end
      return ALLOW
    """

  static func main() throws {
    var isGood = true
    func tell(_ what: String, _ value: Double, _ unit: String, most: Double) {
      let mark = value <= most ? "" : "   above its bound"
      print(
        "\(what.padding(toLength: 58, withPad: " ", startingAt: 0)) \(String(format: "%9.3f", value)) \(unit) (at most \(String(format: "%g", most)))\(mark)"
      )
      isGood = isGood && value <= most
    }

    let root = FileManager.default.temporaryDirectory.appending(path: "policy-bench-\(getpid())")
    defer { try? FileManager.default.removeItem(at: root) }
    let folder = try Folder(root.appending(path: "functions"))
    try write(folder, functions: true)
    let generation = try load(folder)
    let swift = try fiveFacts(generation)
    let bare = bareLua()
    tell("a function of five facts, from Swift, hook armed", swift / 1000, "µs median", most: 2)
    print(
      "\("the same by a bare lua_pcall from C".padding(toLength: 58, withPad: " ", startingAt: 0)) \(String(format: "%9.3f", bare / 1000)) µs median"
    )
    tell("ratio of the two", swift / bare, "times", most: 10)

    let large = try Folder(root.appending(path: "large"))
    try write(large, functions: false)
    for number in 0..<46 {
      try large.write(
        "return flow \"flow_\(number)\" { account = \"any\", steps = { { \"phone_otp\" }, { \"phone_otp\", skippable = true, when = function(f) return f.client.new_device end } } }",
        to: "flows/flow_\(number).lua")
    }
    try large.write(
      "return flow \"login\" { account = \"existing\", steps = { { \"phone_otp\" } } }", to: "flows/login.lua")
    var loads: [Double] = []
    for _ in 0..<9 { loads.append(try milliseconds { _ = try load(large) }) }
    tell("a generation of 50 files loads", median(loads), "ms median", most: 100)

    let plain = try Folder(root.appending(path: "plain"))
    try write(plain, functions: false)
    let policy = try load(plain).policies.values.first
    let functions = [policy?.send, policy?.verify].compactMap(\.self).count
    tell("Lua functions that a static policy's decision calls", Double(functions + varying(policy)), "calls", most: 0)
    if !isGood { exit(EXIT_FAILURE) }
  }

  // MARK: what is measured

  private static func fiveFacts(_ generation: any PolicyGeneration) throws -> Double {
    let evaluator = try generation.makeEvaluator()
    let verify = FunctionName("policies/phone_otp.verify")
    var facts = Facts(now: ManualClock.start, client: ClientFacts(address: .unspecified))
    facts.identifier = Identifier(
      kind: .phone, value: "+919999999999", display: "", attributes: ["country": "IN", "type": "mobile"])
    facts.client.networkChanged = true
    facts.client.isNewDevice = true
    facts.account = AccountFacts(exists: true, id: "ac_1", age: .seconds(90_000), hasPIN: true)
    guard evaluator.verdict(of: verify, given: facts) == .allow else {
      throw Wrong(what: "\(evaluator.verdict(of: verify, given: facts))")
    }
    var times = [Double](repeating: 0, count: calls)
    for index in 0..<calls {
      let start = nanoseconds()
      _ = evaluator.verdict(of: verify, given: facts)
      times[index] = Double(nanoseconds() - start)
    }
    return median(times)
  }

  /// The clock of the other side of the comparison.
  private static func nanoseconds() -> UInt64 { bare_lua_now() }

  private static func bareLua() -> Double {
    let text = """
      facts = { phone = { country = "IN" }, client = { new_device = true, network_changed = true }, account = { age = 90000, has_pin = true } }
      function decide(f)
        \(condition.replacing("ALLOW", with: "true").replacing("DENY", with: "false"))
      end
      """
    var times = [UInt32](repeating: 0, count: calls)
    guard bare_lua_times(text, &times, calls) == 0 else { return .nan }
    return median(times.map(Double.init))
  }

  private static func varying(_ policy: ProviderPolicy?) -> Int {
    policy?.limits.count { if case .varying = $0.max { true } else { false } } ?? 1
  }

  // MARK: folders

  /// A provider of which nothing but its descriptor is asked.
  private struct BenchProvider: Provider {
    let descriptor: ProviderDescriptor
  }

  private static let provider = ProviderDescriptor(
    name: "phone_otp", beginFields: [], submitFields: [],
    settings: [SettingField(name: "sms", kind: .messages(.sms), isRequired: true, help: "")],
    policy: PolicySource(
      file: "policy.lua",
      text: """
        return policy "phone_otp" {
          code = { length = 6 }, message = "{code}",
          limits = {
            send = { on = "send", per = "phone", max = 4, window = "15m" },
            verify = { on = "verify", per = "phone", max = 5, window = "24h", lock = { "15m", "1h", "6h", "24h" } },
          },
        }
        """), identifierKinds: [.phone],
    facts: [FactField(name: "country", kind: .text, help: "the two-letter code of the number's country")])

  private static func write(_ folder: Folder, functions: Bool) throws {
    try folder.write(
      "return gateway { public_url = \"http://localhost:8080\", providers = { phone_otp = { sms = outbox() } } }",
      to: "gateway.lua")
    try folder.write(
      "return routes { { path = \"/**\", to = \"http://127.0.0.1:3000\", allow = true } }", to: "routes.lua")
    let verify =
      functions
      ? "verify = function(f) \(condition.replacing("ALLOW", with: "allow").replacing("DENY", with: "deny 'no'")) end,"
      : ""
    try folder.write("return policy \"phone_otp\" { \(verify) }", to: "policies/phone_otp.lua")
  }

  private static func load(_ folder: Folder) throws -> any PolicyGeneration {
    switch ConfigurationLoader(providers: [BenchProvider(descriptor: provider)], environment: [:]).load(
      folder: folder.url.path)
    {
    case .success(let generation): return generation
    case .failure(let refused): throw Wrong(what: refused.problems.map(\.description).joined(separator: "\n"))
    }
  }

  private struct Folder {
    let url: URL

    init(_ url: URL) throws {
      self.url = url
      for inner in ["flows", "policies"] {
        try FileManager.default.createDirectory(at: url.appending(path: inner), withIntermediateDirectories: true)
      }
    }

    func write(_ text: String, to name: String) throws { try Data(text.utf8).write(to: url.appending(path: name)) }
  }

  private struct Wrong: Error { let what: String }

  private static func milliseconds(_ body: () throws -> Void) rethrows -> Double {
    let took = try ContinuousClock().measure(body).components
    return Double(took.seconds) * 1000 + Double(took.attoseconds) / 1e15
  }

  private static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
}
