import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// A folder with every shipped provider, a `login` flow by phone and additional files, for guarantees.
struct GuaranteeFolder {
  let folder: TestFolder

  static let gateway = """
    return gateway {
      public_url = "http://localhost:8080",
      region = "IN",
      providers = {
        phone_otp = { sms = outbox() }, email_code = { mail = outbox() }, pin = {}, password = {}, totp = { issuer = "Moongate" },
        google_oauth = { client_id = "an-id", client_secret = file "google.secret" },
      },
    }
    """

  /// - Parameter files: replace the folder's files; nil removes one.
  init(_ files: [String: String?]) throws {
    let own: [String: String?] = ["gateway.lua": Self.gateway, "google.secret": "a secret of Google's"]
    folder = try TestFolder(own.merging(files) { $1 })
  }

  func generation() throws -> any PolicyGeneration {
    switch folder.load(ShippedProviders.all.map(\.descriptor)) {
    case .success(let generation): return generation
    case .failure(let refused): throw TestFolder.Refused(problems: refused.problems.map(\.description))
    }
  }

  /// The problems of the files as `check` prints them.
  func problems() -> [String] {
    switch folder.load(ShippedProviders.all.map(\.descriptor)) {
    case .success: []
    case .failure(let refused): refused.problems.map(\.description)
    }
  }

  /// The statements that do not hold, as `check` prints them.
  func refutations() throws -> [String] {
    let registry = try ProviderRegistry(ShippedProviders.all)
    return try #require(GuaranteeProver(try generation(), providers: registry)).problems().map(\.description)
  }
}
