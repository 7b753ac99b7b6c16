import MoongateSDK

/// The operator's settings for passkeys.
struct Rules {
  enum UserVerification: String, CaseIterable { case required, preferred, discouraged }
  enum Attestation: String, CaseIterable { case none, packed }
  enum Counter: String, CaseIterable { case warn, refuse }

  var userVerification = UserVerification.required
  var attestation = Attestation.none
  /// The accepted models, as lower-case UUIDs; empty for all.
  var aaguids: Set<String> = []
  var counter = Counter.warn
  /// The path of the manufacturers' root certificates in PEM; nil if certificates are not accepted.
  var roots: String?
  /// The lifetime of a challenge, in milliseconds.
  var lifetime = Options.lifetime

  init() {}

  init(_ settings: StepSettings) {
    userVerification = settings.text("user_verification").flatMap(UserVerification.init) ?? .required
    attestation = settings.text("attestation").flatMap(Attestation.init) ?? .none
    aaguids = Set(settings.list("aaguids").map { $0.lowercased() })
    roots = settings.file("attestation_roots")
    lifetime = settings.number("timeout").map { Int64($0) * 1_000 } ?? Options.lifetime
    counter = settings.text("counter").flatMap(Counter.init) ?? .warn
  }
}
