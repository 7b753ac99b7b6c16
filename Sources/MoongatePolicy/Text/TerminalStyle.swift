/// Terminal colours (ECMA-48, section 8.3.117), or plain text.
struct TerminalStyle {
  let isOn: Bool

  func green(_ text: String) -> String { with("32", text) }
  func red(_ text: String) -> String { with("31", text) }
  func yellow(_ text: String) -> String { with("33", text) }
  func bold(_ text: String) -> String { with("1", text) }
  func dim(_ text: String) -> String { with("2", text) }

  private func with(_ code: String, _ text: String) -> String { isOn ? "\u{1b}[\(code)m\(text)\u{1b}[0m" : text }
}
