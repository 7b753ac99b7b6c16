/// `/auth/register` (seeds.md, S2 2.7): phone, code, then the flow's `next.new`.
extension NumberForm {
  static func register(_ driver: FlowDriver, _ pages: PageRenderer) -> NumberForm {
    NumberForm(
      wording: Wording(
        flow: "register", path: "/auth/register", title: "Create Account", heading: "Create Account", subtitle: "Enter your number to get started",
        question: "Already have an account?", otherLabel: "Login here", otherPath: "/auth/login"),
      driver: driver, pages: pages)
  }
}
