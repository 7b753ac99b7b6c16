/// What `logout.mustache` shows: the form that signs out.
struct LogoutModel: PageModel {
  static let template = PageTemplate.logout
  static let isForFrames = true

  let isSignedIn: Bool
  let returnTo: String?
  let back: String
}
