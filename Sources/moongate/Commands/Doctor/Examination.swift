import Foundation
import Logging
import MoongateCore
import MoongateDelivery
import MoongateProxy
import MoongateSDK
import MoongateStore
import NIOCore
import NIOPosix
import NIOSSL

/// Takes the measurements that `moongate doctor` judges.
struct Examination {
  let generation: any PolicyGeneration
  let registry: ProviderRegistry
  /// The recipient of a test message: an email address or a phone number; nil to send none.
  let recipient: String?
  private let web = SiteClient()
  private let random = SystemRandom()

  private var gateway: GatewaySettings { generation.gateway }

  init(_ generation: any PolicyGeneration, registry: ProviderRegistry, recipient: String?) {
    self.generation = generation
    self.registry = registry
    self.recipient = recipient
  }

  func findings() async -> [Finding] {
    var all = generation.warnings.map {
      Finding.warning("configuration", "\($0)", fix: "Correct this line, then run `moongate check`.")
    }
    if all.isEmpty { all.append(.ok("configuration", "Generation \(generation.id.prefix(8)) is good.")) }
    all += certificate() + [key()] + disk()
    let (store, storeOffset) = await self.store()
    let (upstreams, offsets) = await self.upstreams()
    all += [
      store, Judgement.clock(storeOffset + offsets),
      Judgement.files(limit: OpenFiles.raiseLimit(), connections: gateway.connectionLimits.connections),
    ]
    all += upstreams + (await messages())
    let addresses = Self.addresses(of: gateway.publicURL.host)
    all.append(Judgement.name(gateway.publicURL, addresses: addresses))
    if !addresses.isEmpty { all.append(await checkPublicURL()) }
    all.append(Judgement.proxies(gateway))
    await web.end()
    return all
  }

  // MARK: this machine

  private func certificate() -> [Finding] {
    guard let files = gateway.tls else { return [] }
    do throws(ServerTLS.Problem) { _ = try ServerTLS(files) } catch {
      return [.failed("certificate", error.description, fix: "Install a certificate with its matching key.")]
    }
    guard let first = try? NIOSSLCertificate.fromPEMFile(files.certificate).first else { return [] }
    let date = { (seconds: time_t) in Date(timeIntervalSince1970: TimeInterval(seconds)) }
    return [
      Judgement.certificate(
        files.certificate, begins: date(first.notValidBefore), ends: date(first.notValidAfter), now: Date())
    ]
  }

  private func key() -> Finding {
    switch gateway.key {
    case .value: return .ok("key", "The master key comes from the environment.")
    case .file(let path) where !FileManager.default.fileExists(atPath: path):
      return .ok("key", "The first start will create the master key: \(path).")
    case .file(let path), .credential(let path):
      do {
        _ = try MasterKey(gateway.key)
        return .ok("key", "\(path) is readable only by this user.")
      } catch {
        return .failed(
          "key", error.sentence,
          fix:
            "Run this as the gateway's user, for example `sudo -u moongate moongate doctor`; then correct the file's mode."
        )
      }
    }
  }

  private func disk() -> [Finding] {
    guard case .sqlite(let path) = gateway.store, path != ":memory:" else { return [] }
    let inner = (path as NSString).deletingLastPathComponent
    let folder = inner.isEmpty ? "." : inner
    // The first start creates missing folders in the nearest one that exists.
    var nearest = folder
    while !nearest.isEmpty, nearest != "/", access(nearest, F_OK) != 0, errno == ENOENT {
      nearest = (nearest as NSString).deletingLastPathComponent
    }
    if nearest.isEmpty { nearest = "." }
    let state: Judgement.FolderState =
      if access(nearest, W_OK | X_OK) == 0 { .usable } else if nearest == folder {
        .refused(reason: MasterKey.reason())
      } else { .missing }
    var findings = [Judgement.permissions(folder, state)].compactMap(\.self)
    var status = statvfs()
    if statvfs(nearest, &status) == 0 {
      findings.append(Judgement.room(nearest, free: UInt64(status.f_bavail) * UInt64(status.f_frsize)))
    }
    return findings
  }

  // MARK: the store

  private func store() async -> (Finding, [(name: String, seconds: Double)]) {
    if case .sqlite(let path) = gateway.store, !FileManager.default.fileExists(atPath: path) {
      return (.ok("store", "There is no store at \(path) yet. The first start will create it."), [])
    }
    do {
      let keys = KeyRing(try KeySource(gateway.key).read())
      let opened = try await OpenedStore(gateway.store, keys)
      defer { try? opened.store.close() }
      let ahead = Double(opened.clock.now().milliseconds) / 1000 - Date().timeIntervalSince1970
      // The clock of a SQLite file is this machine's, unless the file contains later times.
      let isOwnClock = if case .sqlite = gateway.store { ahead < 1 } else { false }
      return (
        .ok("store", "The store answers and belongs to this master key."), isOwnClock ? [] : [("the store", ahead)]
      )
    } catch {
      let reason = (error as? StartProblem)?.sentence ?? "\(error)"
      return (.failed("store", reason, fix: "Fix this first: the gateway does not start without its store."), [])
    }
  }

  // MARK: other machines

  private func upstreams() async -> ([Finding], [(name: String, seconds: Double)]) {
    var findings: [Finding] = []
    var offsets: [(name: String, seconds: Double)] = []
    for upstream in Set(generation.routes.routes.flatMap(\.upstreams)).sorted(by: {
      "\($0.host):\($0.port)" < "\($1.host):\($1.port)"
    }) {
      let url = "\(upstream)/"
      do throws(WebFault) {
        let answer = try await web.send(WebRequest(url: url))
        findings.append(.ok("upstream", "\(url) answers (\(answer.status))."))
        if let date = answer.header("date").flatMap(Self.date) { offsets.append((url, date.timeIntervalSinceNow)) }
      } catch {
        findings.append(
          .failed(
            "upstream", "\(url) does not answer: \(error.reason).",
            fix: "Start the service, or correct `to` in routes.lua."))
      }
    }
    return (findings, offsets)
  }

  /// Checks that public_url leads to a gateway.
  private func checkPublicURL() async -> Finding {
    let url = gateway.publicURL.description + "/.well-known/moongate/jwks.json"
    do throws(WebFault) {
      let answer = try await web.send(WebRequest(url: url))
      guard answer.status == 200, answer.header("content-type")?.contains("json") ?? false else {
        return .failed(
          "public_url", "\(url) answers \(answer.status), not like a gateway.",
          fix: "Configure the proxy to forward /auth, /api/auth and /.well-known/moongate to \(gateway.listen).")
      }
      return .ok("public_url", "\(gateway.publicURL) leads to a gateway.")
    } catch {
      return .warning(
        "public_url", "\(gateway.publicURL) does not answer from this machine: \(error.reason).",
        fix:
          "Start the gateway and the proxy in front of it. If this machine cannot reach the proxy, run the check on another one."
      )
    }
  }

  private func messages() async -> [Finding] {
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

  /// All IP addresses of a host, as resolved by this machine.
  static func addresses(of host: String) -> [String] {
    var found: UnsafeMutablePointer<addrinfo>?
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    let bare = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
    guard getaddrinfo(bare, nil, &hints, &found) == 0 else { return [] }
    defer { freeaddrinfo(found) }
    var all: [String] = []
    var next = found
    while let entry = next {
      var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
      if getnameinfo(
        entry.pointee.ai_addr, entry.pointee.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0
      {
        let address = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        if !all.contains(address) { all.append(address) }
      }
      next = entry.pointee.ai_next
    }
    return all
  }

  /// Parses a `Date` field (RFC 9110 section 5.6.7).
  static func date(_ text: String) -> Date? {
    let format = DateFormatter()
    format.locale = Locale(identifier: "en_US_POSIX")
    format.timeZone = TimeZone(secondsFromGMT: 0)
    format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    return format.date(from: text)
  }
}
