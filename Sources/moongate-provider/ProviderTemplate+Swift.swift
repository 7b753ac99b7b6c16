import MoongateProgram
import MoongateSDK

// A Swift package with one provider, and a second package with a gateway that contains it. The first depends only on
// MoongateSDK and the conformance suite, so its tests build without the gateway.

extension ProviderTemplate {
  /// - Throws: an error if Moongate's sources are not found.
  static func swift(_ new: NewProvider) throws(StartProblem) -> ProviderTemplate {
    let source = try MoongateSource(new.moongate)
    let isCode = new.shape == .code
    let (sources, resources) = ("Sources/NewProvider", "Sources/NewProvider/Resources")
    var files: [String: [UInt8]] = [
      "Package.swift": PackageResources.provider_package_swift,
      "\(sources)/NewProvider.swift": isCode
        ? PackageResources.code_provider_swift : PackageResources.full_provider_swift,
      "\(resources)/policy.lua": isCode ? PackageResources.code_policy_lua : PackageResources.full_policy_lua,
      "\(resources)/hi.words": isCode ? PackageResources.code_hi_words : PackageResources.full_hi_words,
      "Tests/NewProviderTests/NewProviderTests.swift": isCode
        ? PackageResources.code_tests_swift : PackageResources.full_tests_swift,
      "gateway/Package.swift": PackageResources.gateway_package_swift,
      "gateway/Sources/gateway/main.swift": PackageResources.gateway_main_swift,
      "README.md": PackageResources.swift_readme_md, ".gitignore": Array(".build/\n".utf8),
    ]
    if !isCode {
      files["\(resources)/cases.lua"] = PackageResources.full_cases_lua
      files["\(resources)/new_provider_set.lua"] = PackageResources.full_set_lua
      files["\(resources)/new_provider_disable.lua"] = PackageResources.full_disable_lua
    }
    let words = [
      "@FLOWS@": isCode ? "" : "its flows, their cases, ", "@CONFIG@": source.configuration,
      "@STEPS@\n": text(isCode ? PackageResources.code_steps_md : PackageResources.full_steps_md),
      "@ENTRY@": isCode ? "{ mail = outbox() }" : "{}",
      ".package(name: \"moongate\", path: \"/moongate\")": source.dependency,
    ]
    return ProviderTemplate(
      files: filled(files, words, for: new),
      steps: [
        ("swift test", "runs the conformance suite without building the gateway"),
        (
          "swift run --package-path gateway gateway provider test \(new.name)",
          "builds the gateway and runs the suite, rule by rule"
        ),
        (
          "swift run --package-path gateway gateway serve --config …",
          "runs a gateway with it, once gateway.lua and a flow name it"
        ),
      ])
  }
}
