import ArgumentParser

/// `moongate version`
struct Version: ParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Print the version.")

  /// The version of this program, the one place where it is written.
  static let number = "0.1.0"

  func run() { print("moongate \(Self.number)") }
}
