import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import PhoneOTP
import Testing

@testable import MoongatePolicy

/// `allow.networks` in cases: `client { ip = … }` decides whether a request needs a session.
@Suite struct NetworkCaseTests {
  private static let gateway = TestFolder.gateway.replacing(
    "region = \"IN\",", with: "region = \"IN\", trusted_proxies = { \"10.9.9.9/32\" },")
  private static let routes = """
    return routes {
      { path = "/office/**", to = "http://127.0.0.1:3000", allow = { networks = { "10.0.0.0/8", "2001:db8::/32" } },
        require = { email_verified = true }, tokens = { "ci" } },
      { path = "/**", to = "http://127.0.0.1:3000" },
    }
    """

  private func report(_ cases: String) async throws -> CaseReport {
    let folder = try TestFolder([
      "tests/a.lua": "return tests {\n\(cases)\n}", "flows/enter.lua": CaseRunnerTests.enter,
      "gateway.lua": Self.gateway, "routes.lua": Self.routes,
    ])
    switch ConfigurationLoader(providers: TestFolder.providers.map(DescribedProvider.init), environment: [:]).read(
      folder: folder.scratch.path)
    {
    case .success(let loaded):
      let runner = CaseRunner(
        loaded.generation, providers: try ProviderRegistry([PhoneOTP()]), makeStore: { try SQLiteStore.memory() })
      return try await runner.run(loaded.cases)
    case .failure(let refused): throw TestFolder.Refused(problems: refused.problems.map(\.description))
    }
  }

  @Test func addressOfTheClientDecides() async throws {
    let report = try await report(
      """
      case "a colleague" {
        client { ip = "10.1.2.3" }, request { path = "/office/x" }, expect { status = 200 },
        request { path = "/elsewhere" }, expect { status = 401 },
        client { ip = "2001:db8::7" }, request { path = "/office/x" }, expect { status = 200 },
        client { ip = "203.0.113.7" }, request { path = "/office/x" }, expect { status = 401 },
      },
      case "a session that the route would refuse passes from the office only" {
        flow "enter", phone "+919999999999", send(), right(),
        request { path = "/office/x" }, expect { status = 403, code = "email_not_verified" },
        client { ip = "10.1.2.3" }, request { path = "/office/x" }, expect { status = 200 },
      },
      case "shown" { client { ip = "10.1.2.3" }, request { path = "/office/x" }, expect { status = 401 } },
      """)
    #expect(report.failures.map(\.name) == ["shown"], "\(report.text(colour: false))")
    let outcome = report.failures.first?.trace.first { $0.act.hasPrefix("request") }?.outcome
    #expect(outcome == "passes to http://127.0.0.1:3000, which needs no session from 10.1.2.3")
  }

  /// Attack: a proxy without X-Forwarded-For, whose address is in the network; DNS rebinding, by another host; a token
  /// that the route does not take.
  @Test func neitherProxiesNorOtherHostsNorOtherTokensPass() async throws {
    let report = try await report(
      """
      case "attacks" {
        client { ip = "10.9.9.9" }, request { path = "/office/x" }, expect { status = 401 },
        client { ip = "10.1.2.3" }, request { host = "evil.example", path = "/office/x" }, expect { status = 401 },
        token "other", request { path = "/office/x" }, expect { status = 401 },
        token "ci", request { path = "/office/x" }, expect { status = 200 },
      },
      """)
    let holds = report.holds
    #expect(holds, "\(report.text(colour: false))")
  }
}
