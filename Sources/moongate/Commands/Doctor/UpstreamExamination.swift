import Foundation
import MoongateCore
import MoongateDelivery
import MoongateProxy
import MoongateSDK
import NIOCore
import NIOSSL

/// What `moongate doctor` asks of an upstream.
struct UpstreamQuestion: Hashable {
  /// What came of it.
  enum Answer {
    /// - Parameter date: the `Date` field.
    case status(Int, date: String?)
    /// It speaks HTTP/2, and was asked nothing.
    case speaksHTTP2
    /// The reason, as the end of a sentence.
    case failed(String)
  }

  let upstream: Upstream
  /// The path and query.
  let path: String
  /// Whether the path is that of `health`, so that the status counts.
  let isHealth: Bool

  var url: String { "\(upstream)\(path)" }

  /// Each upstream once for each path, by name.
  static func all(of routes: RouteTable) -> [UpstreamQuestion] {
    let all = routes.routes.flatMap { route in
      route.upstreams.map {
        UpstreamQuestion(
          upstream: $0, path: route.health?.path ?? "\(route.rewrite.base)/", isHealth: route.health != nil)
      }
    }
    return Set(all).sorted { $0.url < $1.url }
  }

  /// The request by HTTP/1.1.
  var head: String {
    """
    GET \(path) HTTP/1.1\r
    Host: \(upstream.host):\(upstream.port)\r
    User-Agent: moongate-doctor\r
    Connection: close\r
    \r

    """
  }

  /// The beginning of a connection by HTTP/2 (RFC 9113 section 3.4): the preface, and a SETTINGS frame without
  /// settings.
  static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0]

  /// Whether the first frame of an answer is SETTINGS, which HTTP/2 demands (RFC 9113 sections 3.4 and 4.1).
  /// - Parameter answer: at least nine bytes.
  static func isHTTP2(_ answer: [UInt8]) -> Bool { answer.count >= 9 && answer[3...8] == [4, 0, 0, 0, 0, 0] }
}

/// The upstreams of routes.
extension Examination {
  /// - Returns: also how far the clocks of the upstreams are ahead.
  func upstreams() async -> ([Finding], [(name: String, seconds: Double)]) {
    var findings: [Finding] = []
    var offsets: [(name: String, seconds: Double)] = []
    for question in UpstreamQuestion.all(of: generation.routes) {
      let answer = await ask(question)
      findings.append(Judgement.upstream(question, answer))
      if case .status(_, let date?) = answer, let date = Self.date(date) {
        offsets.append((question.url, date.timeIntervalSinceNow))
      }
    }
    return (findings, offsets)
  }

  private func ask(_ question: UpstreamQuestion) async -> UpstreamQuestion.Answer {
    let upstream = question.upstream
    guard upstream.usesHTTP2 || upstream.trust != nil else {
      do throws(WebFault) {
        let answer = try await web.send(WebRequest(url: question.url))
        return .status(answer.status, date: answer.header("date"))
      } catch {
        return .failed(SiteClient.withoutSite(error.reason, of: question.url))
      }
    }
    do {
      let host = IPAddressBytes.withoutBrackets(upstream.host)
      var peer = RawExchange.Peer(host: host, port: upstream.port)
      if upstream.isSecure {
        var tls = try (upstream.trust ?? UpstreamTrust()).configuration()
        tls.applicationProtocols = upstream.usesHTTP2 ? ["h2"] : []
        peer.tls = tls
        peer.name = upstream.trust?.name ?? (IPAddressText.parse(host.utf8) == nil ? host : nil)
      }
      if upstream.usesHTTP2 {
        let answer = try await RawExchange.answer(to: UpstreamQuestion.preface, from: peer) { $0.count >= 9 }
        return UpstreamQuestion.isHTTP2(answer) ? .speaksHTTP2 : .failed("it does not speak HTTP/2")
      }
      let lines = try await RawExchange.head(of: question.head, from: peer).split(separator: "\r\n")
      guard let status = lines.first?.wholeMatch(of: /HTTP\/1\.[01] ([0-9]{3})( .*)?/).flatMap({ Int($0.1) }) else {
        return .failed("its answer is not HTTP/1.1")
      }
      let date = lines.first { $0.lowercased().hasPrefix("date:") }?.dropFirst(5)
      return .status(status, date: date?.trimmingCharacters(in: .whitespaces))
    } catch ChannelError.eof {
      return .failed("it closed the connection without an answer")
    } catch ChannelError.connectTimeout {
      return .failed("no answer within five seconds")
    } catch {
      return .failed(SiteClient.reason(for: error))
    }
  }

  /// The certificates that the gateway shows to services.
  func upstreamCertificates() -> [Finding] {
    Set(generation.routes.routes.flatMap(\.upstreams)).sorted { $0.description < $1.description }.compactMap {
      upstream in
      guard let bytes = upstream.trust?.certificate, let leaf = try? NIOSSLCertificate.fromPEMBytes(bytes).first else {
        return nil
      }
      return Judgement.certificate(.upstream(url: "\(upstream)"), Self.validity(of: leaf), now: Date())
    }
  }
}

/// Judges what routes depend on.
extension Judgement {
  static func upstream(_ question: UpstreamQuestion, _ answer: UpstreamQuestion.Answer) -> Finding {
    let url = question.url
    switch answer {
    case .status(let status, _) where question.isHealth && !(200...399).contains(status):
      return .failed(
        "upstream", "\(url) answers \(status), so that this upstream counts as down: `health` needs 200 to 399.",
        fix: "Look at the service, or correct the path of `health` in routes.lua.")
    case .status(let status, _): return .ok("upstream", "\(url) answers (\(status)).")
    case .speaksHTTP2: return .ok("upstream", "\(question.upstream) speaks HTTP/2.")
    case .failed(let reason):
      return .failed(
        "upstream", "\(url) does not answer: \(reason).", fix: "Start the service, or correct `to` in routes.lua.")
    }
  }

  /// Judges the routes that need no session in some networks.
  ///
  /// Attack: the gateway takes each client for its proxy, or believes the address that a client claims. A route that is
  /// open to the internal network is then open to everybody.
  /// - Parameter proxies: the finding of `proxies`, which tells whether the addresses of clients are known.
  /// - Returns: nil if there is no such route.
  static func networks(_ routes: RouteTable, proxies: Finding) -> Finding? {
    let open = routes.routes.filter { !$0.openNetworks.isEmpty }
    guard !open.isEmpty else { return nil }
    let places = open.map(\.location.description).joined(separator: ", ")
    guard proxies.state == .failed else {
      let networks = Set(open.flatMap(\.openNetworks).map(\.description)).sorted().joined(separator: ", ")
      return .ok("networks", "Clients of \(networks) need no session at \(places), as `allow.networks` says.")
    }
    return .failed(
      "networks",
      "The addresses of clients are not reliable (see `proxies`), and at \(places) they decide who needs no session (`allow.networks`).",
      fix: "Correct what `proxies` says first, or remove `allow.networks`.")
  }
}
