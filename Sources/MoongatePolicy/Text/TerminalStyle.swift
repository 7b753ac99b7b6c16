/// Terminal colours (ECMA-48, section 8.3.117), or plain text.
package struct TerminalStyle {
  /// Whether there are colours.
  package let isOn: Bool

  package init(isOn: Bool) { self.isOn = isOn }

  package func green(_ text: String) -> String { with("32", text) }
  package func red(_ text: String) -> String { with("31", text) }
  package func yellow(_ text: String) -> String { with("33", text) }
  package func bold(_ text: String) -> String { with("1", text) }
  package func dim(_ text: String) -> String { with("2", text) }

  private func with(_ code: String, _ text: String) -> String { isOn ? "\u{1b}[\(code)m\(text)\u{1b}[0m" : text }
}
