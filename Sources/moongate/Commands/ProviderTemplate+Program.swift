import MoongateSDK

// A program that is a provider: its language's library beside it, its default policy, words, tests, and a subject for
// the conformance suite.

extension ProviderTemplate {
  /// A language that programs are written in: how its files are called, and what its tools are.
  struct ProgramLanguage: Sendable {
    /// The file that its author edits.
    let source: String
    /// What gateway.lua names, and the suite tries: the file itself, or what is built of it.
    let command: String
    /// Where its library lies.
    let library: String
    /// What builds the program; empty where nothing does.
    let build: String
    /// What runs its tests.
    let tests: String
    /// Files of its own, by shape.
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

  /// - Parameter isPlaced: whether it was said where the folder is to be.
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
        ? "In the configuration's folder, change:"
        : "Copy this folder into your configuration's folder, and change there:",
      "@STEPS@\n": text(isCode ? PackageResources.code_steps_md : PackageResources.full_steps_md),
      "@ENTRY@": "exec { \"./new_provider/\(language.command)\" }",
    ]
    let command = language.command.replacing("new_provider", with: new.name.rawValue)
    var steps: [(command: String, what: String)] = [
      ("moongate provider test ./\(command)", "runs the conformance suite against it"),
      (language.tests, "runs your own tests, and the suite"),
    ]
    if !language.build.isEmpty { steps.insert((language.build, "builds it"), at: 0) }
    // Whoever said where it is to be has it there.
    if !isPlaced {
      steps.append(
        ("cp -r . …/config/\(new.name)", "into the configuration's folder; README.md says which lines name it there"))
    }
    return ProviderTemplate(
      files: filled(files, words, for: new), programs: language.build.isEmpty ? [command] : [], steps: steps)
  }
}
