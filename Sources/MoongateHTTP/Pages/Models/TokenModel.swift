/// What `token.mustache` shows: the form for a personal token, or the token that was made.
struct TokenModel: PageModel {
  static let template = PageTemplate.token

  struct Option: Decodable {
    let value: String
    let label: String
    let isChosen: Bool
  }

  /// The form for a new token.
  struct Form: Decodable {
    let name: String?
    let options: [Option]
    let problem: String?
    let nameIsInvalid: Bool
  }

  let form: Form?
  /// The token itself, which is shown only here.
  let secret: String?
  /// The routes that accept the token.
  let routes: [String]
  var stressesSupport = false
}
