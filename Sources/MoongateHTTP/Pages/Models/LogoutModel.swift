/// What `logout.mustache` shows: the form that signs out.
struct LogoutModel: PageModel {
  static let template = PageTemplate.logout

  let isSignedIn: Bool
  let returnTo: String?
  let back: String
}
