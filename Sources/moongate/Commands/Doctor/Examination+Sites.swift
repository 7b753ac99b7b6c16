import Foundation
import MoongateCore
import MoongateDelivery
import MoongateSDK
import Synchronization

/// Whether the other sites answer at which users sign in.
extension Examination {
  /// - Returns: also how far the clocks of the sites are ahead.
  func sites() async -> ([Finding], [(name: String, seconds: Double)]) {
    var findings: [Finding] = []
    let web = DatedWeb(self.web)
    let clock = SystemClock(floor: Timestamp(milliseconds: 0))
    for provider in (generation.registry ?? registry).all {
      let name = provider.descriptor.name
      guard let settings = gateway.providers[name], let site = provider as? any SiteProbing else { continue }
      let tools = StepTools(
        randomBytes: { [random] in random.bytes($0) }, settings: settings.forSteps, web: web,
        clock: StepClock { clock.now().milliseconds })
      do {
        if let told = try await site.probe(with: tools) { findings.append(.ok("site", "\(name): \(told).")) }
      } catch {
        // A warning: it may be down just now, and other ways to sign in work.
        findings.append(
          .warning(
            "site", "\(name): \(error).",
            fix: "Correct the entry \(name) of gateway.lua, or check whether this machine reaches the site."))
      }
    }
    return (findings, web.offsets)
  }
}

/// Notes the clocks of the sites that answer.
private final class DatedWeb: WebClient {
  private let base: SiteClient
  private let noted = Mutex<[String: Double]>([:])

  init(_ base: SiteClient) { self.base = base }

  var offsets: [(name: String, seconds: Double)] {
    noted.withLock { $0 }.sorted { $0.key < $1.key }.map { (name: $0.key, seconds: $0.value) }
  }

  func send(_ request: WebRequest) async throws(WebFault) -> WebAnswer {
    let answer = try await base.send(request)
    if let date = answer.header("date").flatMap(Examination.date), let site = SiteAddress.origin(of: request.url) {
      noted.withLock { $0[site] = date.timeIntervalSinceNow }
    }
    return answer
  }
}
