import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// `policy diff` of apps.lua: who gains or loses which app, and which settings and functions change.
@Suite struct AppDiffTests {
  private static func generation(_ apps: String?) throws -> any PolicyGeneration {
    try TestFolder([
      "apps.lua": apps, "secrets/grafana": "a secret with more than 32 characters",
      "accounts.lua": "return accounts { groups = { ops = members(), staff = members() } }",
    ]).generation()
  }

  private static func grafana(_ settings: String) -> String {
    """
    return apps { grafana = app {
      secret = file "secrets/grafana", redirect_uris = { "https://grafana.example.com/in" },
      \(settings)
    } }
    """
  }

  private static func access(_ old: String?, _ new: String?) throws -> [String] {
    try AccessDiff(old: generation(old), new: generation(new)).access.map {
      "\($0.who) \($0.change.rawValue) \($0.request) \($0.route)"
    }
  }

  @Test func gainsAndLossesAreListed() throws {
    let (all, staff) = (Self.grafana(""), Self.grafana("require = { group = \"staff\" },"))
    #expect(try Self.access(nil, all) == ["signed in gains app grafana apps.lua:1"])
    #expect(try Self.access(all, nil) == ["signed in loses app grafana apps.lua:1"])
    #expect(try Self.access(nil, staff) == ["staff gains app grafana apps.lua:1"])
    #expect(
      try Self.access(staff, Self.grafana("require = { group = \"ops\" },")) == [
        "ops gains app grafana apps.lua:1", "staff loses app grafana apps.lua:1",
      ])
    let decided = Self.grafana("decide = function(f) return f.session.groups.ops and allow or deny \"no\" end,")
    #expect(try Self.access(all, decided) == ["signed in loses app grafana apps.lua:1"])
    #expect(try Self.access(staff, decided).contains("ops gains app grafana apps.lua:1"))
    // A missing step counts as access.
    #expect(try Self.access(all, Self.grafana("require = { factors = 2 },")) == [])
  }

  /// A program that gets tokens for itself is no app that users gain.
  @Test func appWithoutUsersIsNoAccess() throws {
    let text = """
      return apps { billing = app {
        keys = "https://billing.example.com/jwks.json", grants = { "client_credentials" }, scopes = { "invoices:read" },
      } }
      """
    #expect(try Self.access(nil, text) == [] && Self.access(text, nil) == [])
  }

  @Test func settingsAndFunctionsAreCompared() throws {
    let changes = { (old: String?, new: String?) in
      SettingsDiff(old: try Self.generation(old), new: try Self.generation(new), providers: .none).changes
        .filter { $0.of == "apps" }
        .map { "\($0.place) \($0.path): \($0.old ?? "nothing") → \($0.new ?? "nothing")" }
    }
    let viewer = Self.grafana("claims = function(f) return { role = \"Viewer\" } end,")
    #expect(
      try changes(nil, viewer) == [
        "apps.lua:2 grafana.secret: nothing → a secret",
        "apps.lua:2 grafana.redirect_uris: nothing → { \"https://grafana.example.com/in\" }",
        "apps.lua:3 grafana.claims: nothing → function",
      ])
    #expect(
      try changes(viewer, viewer.replacing("\"Viewer\"", with: "\"Admin\"")) == [
        "apps.lua:3 grafana.claims: function (apps.lua:3) → another (apps.lua:3)"
      ])
    #expect(
      try changes(viewer, viewer.replacing("} }", with: "pkce = \"optional\" } }")) == [
        "apps.lua:4 grafana.pkce: \"required\" → \"optional\""
      ])
    #expect(
      try changes(
        viewer, Self.grafana("require = { group = \"ops\", factors = 2 }, lifetimes = { id_token = \"1m\" },"))
        == [
          "apps.lua:3 grafana.require: nothing → { group = \"ops\", factors = 2 }",
          "apps.lua:3 grafana.lifetimes.id_token: \"5m\" → \"1m\"", "apps.lua:3 grafana.claims: function → nothing",
        ])
  }
}
