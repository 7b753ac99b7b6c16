import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import PhoneOTP
import Testing

@testable import MoongatePolicy

/// `app "grafana"` in cases: what an app gets when a user signs in to it.
@Suite struct AppCaseTests {
  private static let apps = """
    return apps {
      grafana = app {
        public = true, redirect_uris = { "https://grafana.example.com/in" }, require = { group = "staff" },
        claims = function(f) return { role = f.session.groups.ops and "Admin" or "Viewer" } end,
      },
      vault = app {
        public = true, redirect_uris = { "https://vault.example.com/in" }, require = { factors = 2 },
      },
      wiki = app {
        public = true, redirect_uris = { "https://wiki.example.com/in" },
        decide = function(f) if f.session.groups.ops then return allow end return deny "ops_only" end,
      },
      billing = app { keys = "https://billing.example.com/jwks.json", grants = { "client_credentials" } },
    }
    """

  private func report(_ cases: String) async throws -> CaseReport {
    let folder = try TestFolder([
      "apps.lua": Self.apps, "tests/a.lua": "return tests {\n\(cases)\n}", "flows/enter.lua": CaseRunnerTests.enter,
      "accounts.lua":
        "return accounts { groups = { ops = members(), staff = members() }, reasons = { ops_only = \"Only for ops.\" } }",
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

  @Test func appsAreTriedAsInProduction() async throws {
    let report = try await report(
      """
      case "apps" {
        flow "enter", phone "+919999999999", app "grafana", expect { status = 401, code = "unauthenticated" },
        send(), right(), expect { status = "complete" },
        app "grafana", expect { status = 403, code = "forbidden" },
        group "staff", app "grafana", expect { status = 200, claims = { role = "Viewer" } },
        group "ops", app "grafana" { scopes = { "openid", "groups" } },
        expect { status = 200, claims = { role = "Admin", groups = { "ops", "staff" } } },
        app "vault", expect { status = 403, code = "step_up_required" },
        app "wiki", expect { status = 200 },
        group { ops = false }, app "wiki", expect { code = "ops_only" },
      },
      """)
    let holds = report.holds
    #expect(holds, "\(report.text(colour: false))")
  }

  @Test func differentClaimFailsTheCase() async throws {
    let report = try await report(
      """
      case "role" {
        flow "enter", phone "+919999999999", send(), right(), group "staff",
        app "grafana", expect { claims = { role = "Admin", team = "red" } },
      },
      """)
    let failure = report.outcomes.first?.failure?.summary
    #expect(
      failure
        == "claims should be { role = \"Admin\", team = \"red\" }, but is { role = \"Viewer\" }",
      "\(report.text(colour: false))")
  }

  @Test(arguments: [
    ("app \"grafanna\"", "1: app: apps.lua defines no app \"grafanna\"; did you mean `grafana`?"),
    ("app { public = true }", "1: app: in a case, name an app of apps.lua, as in app \"grafana\""),
    (
      "app \"billing\"", "1: app: no user signs in to the app \"billing\": its only grant is `client_credentials`"
    ),
    (
      "app \"grafana\" { scopes = { \"opnid\" } }",
      "1: app.scopes: `grafana` may not ask for the scope \"opnid\"; did you mean `openid`?"
    ),
    ("app \"grafana\" { scope = { \"openid\" } }", "1: app.scope: unknown field; did you mean `scopes`?"),
  ]) func mistakeIsReported(act: String, problem: String) throws {
    let problems = try TestFolder([
      "apps.lua": Self.apps, "accounts.lua": "return accounts { groups = { ops = members(), staff = members() } }",
      "tests/a.lua": "return tests { case \"a\" { flow \"login\", \(act), expect { status = 200 } } }",
    ]).problems()
    #expect(problems.first?.hasPrefix("tests/a.lua:\(problem)") == true, "\(problems)")
  }
}
