import ArgumentParser

/// `moongate version`, which prints what `moongate --version` prints.
struct Version: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Print the version, what it was built from, and the libraries that it runs with.")

  func run() { print(BuildVersion.text) }
}
