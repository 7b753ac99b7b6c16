/// What `leave.mustache` shows: the page between the gateway and another site. Redirects of a form are subject to the
/// Content-Security-Policy, which does not list the other site and its own redirects. A page that redirects by itself
/// is not restricted, and works without scripts.
struct LeaveModel: PageModel {
  static let template = PageTemplate.leave
  static let isForFrames = true

  let heading: String
  let subtitle: String
  let address: String
}
