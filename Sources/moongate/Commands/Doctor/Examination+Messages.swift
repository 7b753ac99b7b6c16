import Foundation
import Logging
import MoongateCore
import MoongateDelivery
import MoongateSDK
import NIOCore
import NIOPosix

/// Whether messages can be sent.
extension Examination {
  func messages() async -> [Finding] {
    var findings: [Finding] = []
    var known: [DeliverySettings] = []
    let clock = SystemClock(floor: Timestamp(milliseconds: 0))
    let silent = Logger(label: "doctor") { _ in SwiftLogNoOpLogHandler() }
    let deliveries = Deliveries(outbox: Outbox(clock: clock), clock: clock, random: random, web: web, logger: silent)
    for provider in (generation.registry ?? registry).all {
      let descriptor = provider.descriptor
      guard let settings = gateway.providers[descriptor.name] else { continue }
      for field in descriptor.settings {
        guard case .messages(let channel) = field.kind, let delivery = settings.deliveries[field.name],
          !known.contains(delivery)
        else { continue }
        known.append(delivery)
        findings.append(await message(by: delivery, channel, deliveries, of: descriptor.name))
      }
    }
    return findings
  }

  private func message(
    by delivery: DeliverySettings, _ channel: MessageChannel, _ deliveries: Deliveries, of provider: ProviderName
  ) async -> Finding {
    if delivery == .outbox {
      return .warning(
        "messages", "\(provider) sends nothing: the outbox shows its codes.",
        fix: "Write smtp { … }, twilio { … } or webhook { … }.")
    }
    guard let recipient, recipient.contains("@") == (channel == .mail) else {
      guard let site = Self.site(of: delivery) else {
        return .warning("messages", "The URL of \(provider)'s site is invalid.", fix: "Correct its url.")
      }
      guard await Self.canConnect(to: site.host, site.port) else {
        return .failed(
          "messages", "\(provider): \(site.host):\(site.port) refuses connections.",
          fix: "Correct its url in gateway.lua, or check the network.")
      }
      return .ok(
        "messages", "\(provider): \(site.host):\(site.port) accepts connections. Use --to to send a test message.")
    }
    do throws(DeliveryFault) {
      try await deliveries.messenger(for: delivery).send(
        Message(
          channel: channel, to: recipient, subject: channel == .mail ? "Moongate: a test message" : nil,
          text: "This is a test message from \(gateway.publicURL.host), sent by moongate doctor."))
      return .ok("messages", "\(provider): a test message to \(recipient) was accepted.")
    } catch {
      return .failed(
        "messages", "\(provider): \(error.reason).",
        fix: "Correct it in gateway.lua under providers.\(provider), and try again.")
    }
  }

  private static func site(of delivery: DeliverySettings) -> (host: String, port: Int)? {
    switch delivery {
    case .outbox: return nil
    case .smtp(let smtp): return (smtp.host, smtp.port)
    case .webhook(let webhook): return site(of: webhook.url)
    case .twilio(let twilio): return site(of: twilio.url)
    }
  }

  private static func site(of url: String) -> (host: String, port: Int)? {
    guard let parts = URLComponents(string: url), let host = parts.host else { return nil }
    return (host, parts.port ?? (parts.scheme == "https" ? 443 : 80))
  }

  private static func canConnect(to host: String, _ port: Int) async -> Bool {
    let bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connectTimeout(.seconds(5))
    guard let channel = try? await bootstrap.connect(host: host, port: port).get() else { return false }
    try? await channel.close().get()
    return true
  }
}
