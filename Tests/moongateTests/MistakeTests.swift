import Foundation
import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateTesting
import Testing

@testable import MoongateGateway

/// Typical mistakes in policies, each in a file of Tests/Mistakes with the expected output of `check`. The first line
/// of the output must be at the line of the mistake and say what to do.
///
/// `MOONGATE_WRITE_MISTAKES=1` writes the current output of `check` into the files.
@Suite struct MistakeTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
  private static let folder = root.path + "/Mistakes"
  static let names = ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).filter {
    $0.hasSuffix(".mistake")
  }.sorted()

  private static let base = [
    "gateway.lua": """
    return gateway {
      public_url = "http://localhost:8080",
      region = "IN",
      risk_budget = "0.1% per 30d",
      providers = { phone_otp = { sms = outbox() } },
    }
    """,
    "routes.lua": "return routes { { path = \"/**\", to = \"http://127.0.0.1:3000\" } }",
    "flows/login.lua": "return flow \"login\" { account = \"existing\", steps = { { \"phone_otp\" } } }",
    "flows/enter.lua": "return flow \"enter\" { account = \"any\", steps = { { \"phone_otp\" } } }",
    "policies/phone_otp.lua": "return policy \"phone_otp\" {}",
    "tests/sign_in.lua": """
    return tests {
      case "a code lets in" {
        phone "+919999999999", account { exists = true }, flow "login", send(), right(), expect { status = "complete" },
      },
      case "wrong codes lock" {
        phone "+919999999999", account { exists = true }, flow "login", send(), wrong { until_locked = true }, expect { status = "refused" },
      },
    }
    """,
  ]

  /// The files of a mistake and the expected output.
  private static func read(_ text: String) -> (files: [String: String], expected: String) {
    var files: [String: String] = [:]
    for part in "\n\(text)".components(separatedBy: "\n=== ").dropFirst() {
      let end = part.firstIndex(of: "\n") ?? part.endIndex
      files[String(part[..<end])] = String(part[end...].dropFirst())
    }
    return (files.filter { $0.key != "check" }, files["check"]?.trimmingCharacters(in: .newlines) ?? "")
  }

  @Test func thereAreAtLeastTwenty() { #expect(Self.names.count >= 20) }

  @Test(arguments: names) func isReported(name: String) async throws {
    let path = Self.folder + "/" + name
    let text = try String(contentsOfFile: path, encoding: .utf8)
    let (files, expected) = Self.read(text)
    let folder = try ScratchFolder()
    for (name, text) in Self.base.merging(files, uniquingKeysWith: { $1 }) { try folder.write(text, to: name) }
    let told: String
    switch await ConfigurationFolder(path: folder.path, providers: try Providers.registry()).load(
      casesOfProviders: true)
    {
    case .success(let generation): told = ProblemList(problems: [], warnings: generation.warnings).text
    case .failure(let refused): told = ProblemList(problems: refused.problems, warnings: refused.warnings).text
    }
    if ProcessInfo.processInfo.environment["MOONGATE_WRITE_MISTAKES"] != nil {
      let head = text.components(separatedBy: "=== check\n")[0]
      try (head + "=== check\n" + told + "\n").write(toFile: path, atomically: true, encoding: .utf8)
      return
    }
    #expect(told == expected)
  }
}
