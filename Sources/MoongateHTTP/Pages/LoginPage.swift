/// `/auth/login` (seeds.md, S2).
extension NumberForm {
  static func login(_ driver: FlowDriver, _ pages: PageRenderer) -> NumberForm {
    NumberForm(
      wording: Wording(
        flow: "login", path: "/auth/login", title: "Sign in", heading: "Welcome Back!", subtitle: "Sign in to continue",
        question: "Don't have an account?", otherLabel: "Create Account", otherPath: "/auth/register"),
      driver: driver, pages: pages)
  }
}
