/// What `app.mustache` shows: the question whether an app may receive the result of a sign-in.
struct AppModel: PageModel {
  static let template = PageTemplate.app

  let heading: String
  let subtitle: String
  /// Where the app receives it.
  let receiver: String
  let action: String
  /// The value of the button that agrees.
  let allow: String
  let problem: String?
}
