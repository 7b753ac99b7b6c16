/// What `post.mustache` shows: a form that takes the answer to an app (OAuth 2.0 Form Post Response Mode). A script
/// submits it.
struct PostModel: PageModel {
  static let template = PageTemplate.post

  let heading: String
  let subtitle: String
  /// The app's redirect URI.
  let action: String
  let fields: [AppModel.Field]
}
