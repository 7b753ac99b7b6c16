import Foundation
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// `tracing = otlp { … }` of gateway.lua.
@Suite struct TracingReadingTests {
  private func read(_ tracing: String) throws -> Result<any PolicyGeneration, RefusedConfiguration> {
    let folder = try TestFolder([
      "gateway.lua":
        "return gateway {\ntracing = \(tracing),\npublic_url = \"http://localhost:8080\", providers = { phone_otp = { sms = outbox() }, email_code = { mail = outbox() } } }"
    ])
    return folder.load(environment: ["OTLP": "Bearer 1234567890"])
  }

  @Test(arguments: [
    ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
    ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
    ("https://otel.example.com/otlp/v1/traces", "https://otel.example.com/otlp/v1/traces"),
  ])
  func theAddressGetsThePathOfTheProtocol(url: String, posted: String) throws {
    let settings = try #require(
      try read("otlp { url = \"\(url)\", headers = { [\"Authorization\"] = env \"OTLP\" } }").get().gateway.tracing)
    #expect(settings.url == posted && settings.sample == 0.01)
    #expect(settings.headers.map(\.name) == ["Authorization"] && !"\(settings)".contains("1234567890"))
  }

  @Test(arguments: [
    ("otlp {}", "tracing.url: is missing: the URL of the collector, such as \"http://127.0.0.1:4318\""),
    ("otlp { url = \"127.0.0.1:4318\" }", "tracing.url: \"127.0.0.1:4318\" is not a valid URL"),
    ("otlp { url = \"http://127.0.0.1:4318\", sample = 1.5 }", "tracing.sample: must be a number from 0 to 1"),
    ("otlp { url = \"http://127.0.0.1:4318\", sample = \"1%\" }", "tracing.sample: must be a number from 0 to 1"),
    ("otlp { url = \"http://127.0.0.1:4318\", sampel = 0.1 }", "did you mean `sample`?"),
    ("\"http://127.0.0.1:4318\"", "tracing: must be a collector, as in otlp { url = \"http://127.0.0.1:4318\" }"),
  ])
  func mistakesAreReported(tracing: String, problem: String) throws {
    guard case .failure(let refused) = try read(tracing) else {
      Issue.record("the folder was accepted")
      return
    }
    #expect(refused.problems.count == 1 && refused.problems[0].description.contains(problem), "\(refused.problems)")
    #expect(refused.problems[0].description.hasPrefix("gateway.lua:2: "))
  }
}
