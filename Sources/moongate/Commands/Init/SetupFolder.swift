// Import Glibc explicitly: the compiler attributes `struct stat` to the first of these modules that it loads.
import CDispatch
import CoreFoundation
import Foundation
import Glibc
import MoongateCore
import MoongateProgram
import MoongateSDK

/// The configuration that `moongate init` writes.
struct SetupFolder {
  /// The contents by path in the folder.
  private(set) var files: [String: String] = [:]
  /// The paths of secret files, with mode 600.
  private(set) var secrets: Set<String> = []

  /// - Parameters:
  ///   - state: the folder of the key and of a SQLite store, relative to the configuration folder.
  ///   - region: the region of phone numbers without +; nil to leave it out.
  ///   - service: the site's name in messages and pages.
  init(_ answers: SetupAnswers, state: String, region: String?, service: String) {
    let code = answers.messages.provider.rawValue
    let words = [
      "@PUBLIC_URL@": Self.quoted(answers.publicURL.description),
      "@UPSTREAM@": Self.quoted(answers.upstream.description),
      "@LISTEN@": "\(answers.listenPort)", "@ADMIN@": "\(answers.adminPort)",
      "@KEY@": Self.quoted("\(state)/master.key"), "@REGION@": region.map(Self.regionText) ?? "",
      "@SERVICE@": Self.quoted(service), "@CODE@": Self.quoted(code),
      "@SIGN_IN@": Self.names([answers.messages.provider] + (answers.hasPasskeys ? [Providers.passkeys] : [])),
      "@STEP_UP@": Self.names([answers.messages.provider] + answers.secondFactors),
      "@PASSKEY@": answers.hasPasskeys ? Self.passkeyText(service) : "",
      "@OFFER@": answers.hasPasskeys ? Self.offerText : "",
      "@STORE@": storeText(answers.store, state: state), "@MESSAGES@": messagesText(answers.messages),
    ]
    let fill = { (file: [UInt8]) in Self.fill(String(decoding: file, as: UTF8.self), words) }
    files["gateway.lua"] = fill(PackageResources.init_gateway_lua)
    files["routes.lua"] = fill(PackageResources.init_routes_lua)
    files["accounts.lua"] = fill(PackageResources.init_accounts_lua)
    files["flows/login.lua"] = fill(PackageResources.init_login_lua)
    files["flows/register.lua"] = fill(PackageResources.init_register_lua)
    files["flows/step_up.lua"] = fill(PackageResources.init_step_up_lua)
    for provider in [code] + answers.secondFactors.map(\.rawValue) {
      let policy = String(decoding: PackageResources.init_policy_lua, as: UTF8.self)
      files["policies/\(provider).lua"] = Self.fill(policy, ["@NAME@": provider, "@PROVIDER@": Self.quoted(provider)])
    }
  }

  /// Fills the placeholders of a template in one pass, so that an answer that looks like a placeholder stays unchanged.
  private static func fill(_ template: String, _ words: [String: String]) -> String {
    template.split(separator: "@", omittingEmptySubsequences: false).enumerated().map { index, part in
      index % 2 == 0 ? String(part) : words["@\(part)@"] ?? "@\(part)@"
    }.joined()
  }

  /// A Lua string literal. Attack: an answer with a quote injects Lua code.
  static func quoted(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": quoted += "\\\(scalar)"
      case _ where scalar.value < 0x20 || scalar.value == 0x7f:
        let digits = String(scalar.value)
        quoted += "\\" + String(repeating: "0", count: 3 - digits.count) + digits
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "\""
  }

  private static func names(_ providers: [ProviderName]) -> String {
    providers.map { quoted($0.rawValue) }.joined(separator: ", ")
  }

  private static func regionText(_ region: String) -> String {
    """
      -- The country (two letters, ISO 3166-1) of phone numbers that are typed without +.
      region = \(quoted(region)),


    """
  }

  private static func passkeyText(_ service: String) -> String {
    """
        -- Passkeys: the fingerprint, face or PIN of a device. `rp_name` is what devices call the site.
        \(Providers.passkeys) = { rp_name = \(quoted(service)) },

    """
  }

  private static let offerText = """


      -- What people are offered to set up after a sign-in, with "Skip for now".
      offer = { { \(quoted(Providers.passkeys.rawValue)), every = "30d" } },
    """

  private mutating func secret(_ name: String, _ value: String) -> String {
    files["secrets/\(name)"] = value + "\n"
    secrets.insert("secrets/\(name)")
    return "file \(Self.quoted("secrets/\(name)"))"
  }

  private mutating func storeText(_ store: SetupAnswers.Store, state: String) -> String {
    switch store {
    case .sqlite: Self.quoted("sqlite:\(state)/moongate.db")
    case .postgres(let url, isSecret: false): Self.quoted(url)
    case .postgres(let url, isSecret: true): secret("store", url)
    }
  }

  private mutating func messagesText(_ messages: SetupAnswers.Messages) -> String {
    switch messages {
    case .smtp(let host, let port, let user, let password, let from):
      var fields = ["url = \(Self.quoted("\(port == 465 ? "smtps" : "smtp")://\(host):\(port)"))"]
      if let user, let password {
        fields += ["user = \(Self.quoted(user))", "password = \(secret("smtp.password", password))"]
      }
      fields.append("from = \(Self.quoted(from))")
      return "    -- Codes by mail.\n    \(messages.provider) = { mail = smtp { \(fields.joined(separator: ", ")) } },"
    case .twilio(let account, let token, let from):
      let fields =
        "account_sid = \(Self.quoted(account)), auth_token = \(secret("twilio.token", token)), from = \(Self.quoted(from))"
      return "    -- Codes by SMS.\n    \(messages.provider) = { sms = twilio { \(fields) } },"
    case .webhook(let url):
      return
        "    -- Codes by SMS: each message is posted to this URL as JSON.\n    \(messages.provider) = { sms = webhook { url = \(Self.quoted(url)) } },"
    }
  }

  // MARK: writing

  /// Refuses a name that is empty, a link that leads nowhere, and a folder that is not empty.
  /// - Throws: an error with exit status 2.
  static func demandEmpty(_ folder: String) throws(StartProblem) {
    guard !folder.isEmpty else {
      throw StartProblem(
        "The name of the folder is empty. Name the folder to write, for example /etc/moongate.", status: .couldNotRun)
    }
    // Only lstat sees a link that leads nowhere.
    var status = stat()
    guard lstat(folder, &status) == 0 else { return }
    guard FileManager.default.fileExists(atPath: folder) else {
      throw StartProblem(
        "\(folder) is a symbolic link to something that does not exist. Choose an empty or a new folder.",
        status: .couldNotRun)
    }
    guard let names = try? FileManager.default.contentsOfDirectory(atPath: folder) else {
      throw StartProblem(
        "\(folder) is not a readable folder. Choose an empty or a new folder.", status: .couldNotRun)
    }
    guard names.isEmpty else {
      throw StartProblem(
        "\(folder) is not empty (\(names.sorted()[0])) and is not overwritten. Choose an empty or a new folder.",
        status: .couldNotRun)
    }
  }

  /// What `write` has created, in the order of creation.
  struct Written {
    fileprivate(set) var files: [String] = []
    /// With the folders above the configuration that were missing.
    fileprivate(set) var folders: [String] = []

    /// Removes the files, and the folders that are empty then.
    func remove() {
      for file in files { unlink(file) }
      for folder in folders.reversed() { rmdir(folder) }
    }
  }

  /// Writes all files, or none.
  /// - Throws: an error with exit status 2.
  @discardableResult func write(to folder: String) throws(StartProblem) -> Written {
    try Self.demandEmpty(folder)
    var written = Written()
    do {
      try Self.makeFolder(folder, &written)
      for (path, text) in files.sorted(by: { $0.key < $1.key }) {
        let file = "\(folder)/\(path)"
        let parent = file.parentFolder
        try Self.makeFolder(parent, mode: secrets.contains(path) ? 0o700 : nil, &written)
        if secrets.contains(path) {
          // Create the file with mode 600, so that other users can never read it.
          _ = try MasterKey.make(file, Array(text.utf8))
        } else {
          do { try Data(text.utf8).write(to: URL(filePath: file), options: .withoutOverwriting) } catch {
            // On a full disk, a part of the file may be there.
            if (error as? CocoaError)?.code != .fileWriteFileExists { unlink(file) }
            throw error
          }
        }
        written.files.append(file)
      }
    } catch {
      written.remove()
      let reason = (error as? StartProblem)?.sentence ?? FileProblem(error).description
      throw StartProblem("\(folder) could not be written: \(reason)", status: .couldNotRun)
    }
    return written
  }

  /// Creates a folder and the missing folders above it.
  /// - Parameter mode: the permissions; nil to take those of the umask.
  private static func makeFolder(_ path: String, mode: Int? = nil, _ written: inout Written) throws {
    let manager = FileManager.default
    guard !path.isEmpty, !manager.fileExists(atPath: path) else { return }
    try makeFolder(path.parentFolder, &written)
    // `a/..` exists as soon as `a` does.
    guard !manager.fileExists(atPath: path) else { return }
    try manager.createDirectory(
      atPath: path, withIntermediateDirectories: false, attributes: mode.map { [.posixPermissions: $0] })
    written.folders.append(path)
  }

  /// Creates the folder of the key and the store with mode 700.
  /// - Parameter state: a path, relative to the configuration folder.
  /// - Returns: the path; nil if something exists there, or if another user owns the folder around it: that user can
  ///   create it.
  /// - Throws: an error if the folder cannot be created.
  static func makeState(_ state: String, in folder: String) throws(StartProblem) -> String? {
    let path = state.hasPrefix("/") ? state : "\(folder)/\(state)"
    var status = stat()
    guard lstat(path, &status) != 0 else { return nil }
    // Attack: in a folder of its own, the service replaces a part of the path by a link while root hands it over.
    if stat(path.parentFolder, &status) == 0, status.st_uid != geteuid() { return nil }
    guard mkdir(path, 0o700) == 0 else {
      throw StartProblem(
        "The folder \(path) of the key and the store cannot be created: \(MasterKey.reason()). "
          + "Run: install -d -o \(ServiceUser.name) -g \(ServiceUser.name) -m 700 \(path)")
    }
    return path
  }
}
