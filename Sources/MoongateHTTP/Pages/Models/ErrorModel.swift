/// What the templates of `error_pages` show: a refusal of a request to a service.
struct ErrorModel: Decodable {
  /// Such as `403`.
  let status: String
  /// The name of the refusal, such as `forbidden`, or the reason of a policy.
  let code: String
  let title: String
  let sentence: String
  /// A line with the ID of the decision, for support.
  let reference: String
  /// The ID alone, for `moongate policy explain`.
  let decision: String
  /// The seconds after which the request may succeed; nil: unknown.
  let retryAfter: String?
  /// The signed-in account, masked, if the refusal concerns its user.
  let signedInAs: String?
  /// What the user can do.
  let links: [MessageModel.Link]
  /// The address in `public_url`.
  let home: String
  /// Style elements with this nonce apply.
  let nonce: String
  let stressesSupport: Bool
}

extension ErrorModel {
  /// More than five parameters: the values that the built-in page does not have.
  /// - Parameter message: what the built-in page would show.
  init(
    _ message: MessageModel, status: Int, code: String, retryAfter: Int?, decision: String, home: String, nonce: String
  ) {
    self.init(
      status: String(status), code: code, title: message.heading, sentence: message.sentence,
      reference: message.reference ?? "", decision: decision, retryAfter: retryAfter.map { String($0) },
      signedInAs: message.signedInAs, links: message.links, home: home, nonce: nonce,
      stressesSupport: message.stressesSupport)
  }

  /// A refusal with all its parts, by which templates are checked.
  static let sample = ErrorModel(
    MessageModel(
      heading: "Access denied", sentence: "You may not open this page.", signedInAs: "a•••@example.com",
      links: [MessageModel.Link(address: "/auth/account", label: "Your account")], reference: "Reference: dc_1"),
    status: 403, code: "denied", retryAfter: 60, decision: "dc_1", home: "https://auth.example.com", nonce: "bm9uY2U")
}
