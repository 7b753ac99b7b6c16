import ArgumentParser

/// `moongate version`, which prints what `moongate --version` prints.
struct Version: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Print the version, the commit and compiler of the build, and the versions of the libraries.")

  func run() { print(BuildVersion.text) }
}
