/// What `choose.mustache` shows: the accounts that claim an email address.
struct ChooseModel: PageModel {
  static let template = PageTemplate.choose
  static let isForFrames = true

  struct Option: Decodable {
    let value: String
    let created: String
    let used: String
    /// For screen readers.
    let label: String
  }

  let action: String
  let options: [Option]
  let problem: String?
  var stressesSupport = false
}
