/// What `message.mustache` shows: one message, with links.
struct MessageModel: PageModel {
  static let template = PageTemplate.message
  static let isForFrames = true

  struct Link: Decodable {
    let address: String
    let label: String
    /// The CSS class: `button` or `link`.
    var style = "button"
  }

  let heading: String
  let sentence: String
  /// The signed-in account, masked.
  var signedInAs: String?
  let links: [Link]
  /// The line with the decision id, for support.
  var reference: String?
  var stressesSupport = false
}
