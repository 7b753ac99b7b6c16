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
    var channels: Set<MessageChannel> = []
    let clock = SystemClock(floor: Timestamp(milliseconds: 0))
    let silent = Logger(label: "doctor") { _ in SwiftLogNoOpLogHandler() }
    let deliveries = Deliveries(outbox: Outbox(clock: clock), clock: clock, random: random, web: web, logger: silent)
    for provider in (generation.registry ?? registry).all {
      let descriptor = provider.descriptor
      guard let settings = gateway.providers[descriptor.name] else { continue }
      for field in descriptor.settings {
        guard case .messages(let channel) = field.kind, let delivery = settings.deliveries[field.name] else { continue }
        if delivery != .outbox { channels.insert(channel) }
        guard !known.contains(delivery) else { continue }
        known.append(delivery)
        findings.append(await message(by: delivery, channel, deliveries, of: descriptor.name))
      }
    }
    if let recipient, let finding = Judgement.recipient(recipient, channels: channels) { findings.append(finding) }
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
      if let problem = await Self.connectionProblem(site.host, site.port) {
        return .failed(
          "messages", "\(provider): \(site.host):\(site.port) cannot be reached: \(problem).",
          fix: "Correct its url in gateway.lua, or check the network.")
      }
      let hint = recipient == nil ? " Use --to to send a test message." : ""
      return .ok("messages", "\(provider): \(site.host):\(site.port) accepts connections.\(hint)")
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

  /// Opens a connection and closes it again.
  /// - Returns: the reason if it fails, in the words of the system; nil if it succeeds.
  static func connectionProblem(_ host: String, _ port: Int) async -> String? {
    let bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connectTimeout(.seconds(5))
    do {
      let channel = try await bootstrap.connect(host: host, port: port).get()
      try? await channel.close().get()
      return nil
    } catch let error as NIOConnectionError {
      // Without an attempt there was no address to connect to.
      guard let failure = error.connectionErrors.first else { return "the host name has no address" }
      return words(for: failure.error)
    } catch {
      return words(for: error)
    }
  }

  private static func words(for error: any Error) -> String {
    switch error {
    case let error as IOError: String(cString: strerror(error.errnoCode))
    case ChannelError.connectTimeout: "no answer within 5 seconds"
    default: "\(error)"
    }
  }
}
