import MoongateSDK

/// What the operator's settings ask of passkeys.
struct Rules {
  enum UserVerification: String, CaseIterable { case required, preferred, discouraged }
  enum Attestation: String, CaseIterable { case none, packed }
  enum Counter: String, CaseIterable { case warn, refuse }

  var userVerification = UserVerification.required
  var attestation = Attestation.none
  /// The models that are accepted, as UUIDs in lower case; empty: all.
  var aaguids: Set<String> = []
  var counter = Counter.warn
  /// The path of the file with the roots of manufacturers, in PEM; nil: certificates are not accepted.
  var roots: String?
  /// How long a challenge lives, in milliseconds.
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
