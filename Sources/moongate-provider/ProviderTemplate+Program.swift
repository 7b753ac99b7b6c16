import MoongateSDK

// A provider that is a separate program: its source with the language's library, a default policy, texts, tests, and a
// subject file for the conformance suite.

extension ProviderTemplate {
  /// A programming language: its file names and tools.
  struct ProgramLanguage: Sendable {
    /// The file that the author edits.
    let source: String
    /// The program that gateway.lua names and the suite runs: the source file or the built program.
    let command: String
    /// The path of the language's library.
    let library: String
    /// The build command; empty if none exists.
    let build: String
    /// The test command.
    let tests: String
    /// Additional files, by shape.
    let files: @Sendable (_ isCode: Bool) -> [String: [UInt8]]

    static let python = ProgramLanguage(
      source: "new_provider.py", command: "new_provider.py", library: "moongate.py", build: "",
      tests: "python3 -m unittest"
    ) { isCode in
      [
        "new_provider.py": isCode ? PackageResources.code_provider_py : PackageResources.full_provider_py,
        "test_new_provider.py": isCode ? PackageResources.code_test_py : PackageResources.full_test_py,
        "moongate.py": PackageResources.moongate_py,
      ]
    }

    static let node = ProgramLanguage(
      source: "new_provider.mjs", command: "new_provider.mjs", library: "moongate.mjs", build: "", tests: "node --test"
    ) { isCode in
      [
        "new_provider.mjs": isCode ? PackageResources.code_provider_mjs : PackageResources.full_provider_mjs,
        "new_provider.test.mjs": isCode ? PackageResources.code_test_mjs : PackageResources.full_test_mjs,
        "moongate.mjs": PackageResources.moongate_mjs,
      ]
    }

    static let go = ProgramLanguage(
      source: "main.go", command: "new_provider", library: "moongate/moongate.go", build: "go build",
      tests: "go test ./..."
    ) { isCode in
      [
        "main.go": isCode ? PackageResources.code_provider_go : PackageResources.full_provider_go,
        "main_test.go": isCode ? PackageResources.code_test_go : PackageResources.full_test_go,
        "moongate/moongate.go": PackageResources.moongate_go,
        "go.mod": Array("module new_provider\n\ngo 1.19\n".utf8), ".gitignore": Array("/new_provider\n".utf8),
      ]
    }
  }

  /// - Parameter isPlaced: whether the command line named the parent folder.
  static func program(_ new: NewProvider, in language: ProgramLanguage, isPlaced: Bool = false) -> ProviderTemplate {
    let isCode = new.shape == .code
    var files = language.files(isCode)
    files["policy.lua"] = isCode ? PackageResources.code_policy_lua : PackageResources.full_policy_lua
    files["words/hi.words"] = isCode ? PackageResources.code_hi_words : PackageResources.full_hi_words
    files["subject.json"] = isCode ? PackageResources.code_subject_json : PackageResources.full_subject_json
    files["README.md"] = PackageResources.program_readme_md
    if !isCode {
      files["cases.lua"] = PackageResources.full_cases_lua
      files["flows/new_provider_set.lua"] = PackageResources.full_set_lua
      files["flows/new_provider_disable.lua"] = PackageResources.full_disable_lua
    }
    let words = [
      "@PROGRAM@": language.source, "@COMMAND@": language.command, "@LIBRARY@": language.library,
      "@TESTS@": language.tests,
      "@BUILD@": language.build.isEmpty ? "" : "\(language.build) && ",
      "@SAVE@": language.build.isEmpty ? "save it" : "build it",
      "@FLOWS@": isCode ? "" : "its flows in `flows/`, what holds of them in `cases.lua`, ",
      "@PLACE@": isPlaced
        ? "In the configuration folder, change:"
        : "Copy this folder into your configuration folder, and change there:",
      "@STEPS@\n": text(isCode ? PackageResources.code_steps_md : PackageResources.full_steps_md),
      "@ENTRY@": "exec { \"./new_provider/\(language.command)\" }",
    ]
    let command = language.command.replacing("new_provider", with: new.name.rawValue)
    var steps: [(command: String, what: String)] = [
      ("moongate-provider test ./\(command)", "runs the conformance suite"),
      (language.tests, "runs your tests and the suite"),
    ]
    if !language.build.isEmpty { steps.insert((language.build, "builds it"), at: 0) }
    // With an explicit parent folder, the provider is already in its place.
    if !isPlaced {
      steps.append(
        (
          "cp -r . …/config/\(new.name)",
          "copies it into the configuration folder; README.md has the lines that configure it"
        ))
    }
    return ProviderTemplate(
      files: filled(files, words, for: new), programs: language.build.isEmpty ? [command] : [], steps: steps)
  }
}
