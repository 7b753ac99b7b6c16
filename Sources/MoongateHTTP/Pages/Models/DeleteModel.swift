/// What `delete.mustache` shows: a form that confirms deleting the account, or ending all sessions.
struct DeleteModel: PageModel {
  static let template = PageTemplate.delete

  let heading: String
  let subtitle: String
  let confirm: String
  let action: String
  /// The text of the form's button, if it is not the default.
  var wanted: String?
  var stressesSupport = false
}
