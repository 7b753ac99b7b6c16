import Foundation
import MoongateCore
import MoongateDelivery
import MoongateSDK

/// The proxies between public_url and the gateway.
extension Examination {
  /// Sends a probe to public_url, as a client that claims to have another address.
  /// - Returns: nil if no gateway with this master key answers.
  func forwarding() async -> Judgement.Forwarding? {
    guard let masters = try? KeySource(gateway.key).read() else { return nil }
    let now = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
    guard let ticket = try? ForwardingProbe.ticket(KeyRing(masters), at: now) else { return nil }
    let probe = WebRequest(
      url: gateway.publicURL.description + ForwardingProbe.path,
      headers: [(ForwardingProbe.header, ticket), ("X-Forwarded-For", ForwardingProbe.claimed)])
    guard let answer = try? await web.send(probe), answer.status == 200,
      let report = try? JSONDecoder().decode(ForwardingReport.self, from: Data(answer.body))
    else { return nil }
    return Judgement.Forwarding(report: report, isOwn: Self.isOwn)
  }

  /// Sends a request with two hosts to public_url.
  func judgedHost() async -> Finding {
    guard let probe = HostProbe(generation.routes, publicURL: gateway.publicURL) else {
      return Judgement.judgedHostNotTried("no route of another host needs a session, so no answer tells it")
    }
    guard let head = await RawExchange.head(of: probe.head(for: gateway.publicURL), from: gateway.publicURL) else {
      return Judgement.judgedHostNotTried("nothing answered the request at \(gateway.publicURL)")
    }
    return Judgement.judgedHost(of: probe, isBelieved: probe.isBelieved(in: head), gateway)
  }

  /// Whether an address belongs to this machine.
  private static func isOwn(_ address: String) -> Bool {
    bindProblem(ListenAddress(host: address, port: 0)) == nil
  }
}
