import Foundation

/// Who presents a certificate: to clients, or to a service.
enum CertificatePresenter: Equatable {
  /// The gateway, from the file of `tls`.
  case gateway(file: String)
  /// A proxy in front of the gateway, at `public_url`.
  case proxy(url: String)
  /// The gateway to a service, by `upstream_tls`.
  case upstream(url: String)

  /// The certificate, as the subject of a sentence.
  var subject: String {
    switch self {
    case .gateway(let file): file
    case .proxy(let url): "The certificate at \(url)"
    case .upstream(let url): "The certificate that `upstream_tls` shows to \(url)"
    }
  }

  /// What to do if it has expired.
  fileprivate var renewal: String {
    switch self {
    case .gateway: "Renew it; the gateway loads the new file within a second."
    case .proxy: "Renew the certificate at the proxy, and let the proxy load the new one."
    case .upstream: "Renew it, then run `moongate reload`."
    }
  }

  /// What to do if it is about to expire.
  fileprivate var search: String {
    switch self {
    case .gateway: "Find out why it was not renewed: `certbot renew --dry-run`."
    case .proxy:
      "Find out why it was not renewed (`certbot renew --dry-run`), or why the proxy has not loaded the new one."
    case .upstream: "Renew it in time, then run `moongate reload`: the service will refuse the expired one."
    }
  }
}

/// Judges certificates.
extension Judgement {
  static func certificate(_ presenter: CertificatePresenter, _ validity: DateInterval, now: Date) -> Finding {
    let left = validity.end.timeIntervalSince(now)
    let days = Int((left / 86_400).rounded(.down))
    let day = validity.end.formatted(.iso8601.year().month().day())
    let subject = presenter.subject
    if now < validity.start {
      return .failed(
        "certificate", "\(subject) is not valid yet.",
        fix: "Set this machine's clock, or use the previous certificate.")
    }
    if now >= validity.end {
      return .failed("certificate", "\(subject) expired on \(day).", fix: presenter.renewal)
    }
    // An authority that issues for a few days, as Caddy's own does for hours, renews at the last third.
    if left < min(14 * 86_400, validity.duration / 3) {
      return .warning(
        "certificate", "\(subject) expires in \(days) \(days == 1 ? "day" : "days"), on \(day).",
        fix: presenter.search)
    }
    return .ok("certificate", "\(subject) is valid until \(day).")
  }

  /// - Parameters:
  ///   - certificate: what has the names, as the subject of a sentence.
  ///   - hosts: the host of `public_url`, and then those of routes.
  ///   - hasProxy: whether requests come from a proxy, which may accept a certificate for another name.
  /// - Returns: nil if the certificate is valid for all hosts.
  static func names(_ certificate: String, _ names: CertificateNames, hosts: [String], hasProxy: Bool) -> Finding? {
    let missing = hosts.filter { !names.covers($0) }
    guard !missing.isEmpty else { return nil }
    let list = missing.joined(separator: ", ")
    let all = names.texts.isEmpty ? "It names no host." : "It names \(names.texts.joined(separator: ", "))."
    let fix = "Install a certificate that names \(list) too, so that browsers accept it."
    let told = "\(certificate) is not valid for \(list). \(all)"
    return hasProxy ? .warning("certificate", told, fix: fix) : .failed("certificate", told, fix: fix)
  }

  /// Judges a certificate with the right name, within its validity, that cannot be verified on this machine.
  static func untrusted(_ presenter: CertificatePresenter) -> Finding {
    let told = "\(presenter.subject) is not signed by an authority that this machine trusts."
    let ownAuthority = "If the authority is your own, let this machine trust it (`update-ca-certificates`)."
    switch presenter {
    case .gateway:
      // A warning only: the users' machines may trust an authority of their own.
      return .warning(
        "certificate", told, fix: "Install the whole chain of a public authority (fullchain.pem). \(ownAuthority)")
    case .proxy:
      return .failed(
        "certificate", told,
        fix: "Install the whole chain of a public authority (fullchain.pem) at the proxy. \(ownAuthority)")
    case .upstream: return .failed("certificate", told, fix: "Let the service trust its authority.")
    }
  }
}
