import Foundation
import MoongateCore
import MoongateProgram
import MoongateTesting
import Testing

@testable import MoongateGateway

/// The answers of `moongate init` and the written files.
@Suite struct SetupTests {
  private func problem<Value>(_ body: () throws -> Value) -> String? {
    do {
      _ = try body()
      return nil
    } catch {
      return (error as? SetupAnswers.Problem)?.sentence ?? (error as? StartProblem)?.sentence
    }
  }

  private func answers(
    _ store: String, _ messages: String, publicURL: String = "https://auth.example.com",
    upstream: String = "http://127.0.0.1:3000"
  ) throws -> SetupAnswers {
    let gateway = try SetupAnswers.publicURL(publicURL)
    return SetupAnswers(
      publicURL: gateway, upstream: try SetupAnswers.upstream(upstream, gateway: gateway),
      store: try SetupAnswers.store(store), messages: try SetupAnswers.messages(messages, host: gateway.host))
  }

  private func files(_ store: String, _ messages: String, service: String = "Wallet") throws -> SetupFolder {
    SetupFolder(try answers(store, messages), state: "data", region: "IN", service: service)
  }

  private func steps(
    _ answers: SetupAnswers, folder: String = "/srv/m", state: String = "data", user: String? = nil,
    tools: NextSteps.Tools = NextSteps.Tools(hasUnit: false, hasSudo: true)
  ) -> String {
    NextSteps(folder: folder, answers: answers, state: state, user: user, tools: tools).text
  }

  @Test func invalidAnswersAreReported() {
    #expect(problem { try SetupAnswers.publicURL("http://auth.example.com") }?.contains("Use https.") ?? false)
    #expect(problem { try SetupAnswers.publicURL("auth.example.com") }?.contains("is not a public URL") ?? false)
    #expect(
      problem { try answers("sqlite", "smtp://localhost", upstream: "http://127.0.0.1:3000/path") }?.contains(
        "is not the URL of a service") ?? false)
    #expect(
      problem { try SetupAnswers.messages("pigeons", host: "a.example") }?.contains("is not a message service")
        ?? false)
    #expect(
      problem { try SetupAnswers.messages("smtp://me@mail.example.com", host: "a.example") }?.contains(
        "both user and password") ?? false)
  }

  @Test(arguments: [
    "postgres://", "postgres://u:p@h", "postgres://u:p@h/", "postgres:///db", "postgresql://u@:5432/db",
    "postgres://u:p@h?sslmode=require",
  ]) func aStoreWithoutHostOrDatabaseIsRefused(_ store: String) {
    #expect(
      problem { try SetupAnswers.store(store) }
        == "The store needs a host and a database: postgres://user@host/database.")
  }

  @Test(arguments: [
    "postgres://u:p@h/db", "postgresql://h:5432/db", "postgres:///db?host=/var/run/postgresql",
    "postgres://u@h1:5432,h2:5432/db?sslmode=require", "postgres://u@[2001:db8::1]:5432/db",
  ]) func aStoreWithHostAndDatabaseIsTaken(_ store: String) {
    #expect(problem { try SetupAnswers.store(store) } == nil)
  }

  /// Attack: anyone between the gateway and the webhook reads the codes.
  @Test func aWebhookWithoutTLSIsTakenOnlyOnThisMachine() {
    #expect(
      problem { try SetupAnswers.messages("http://sms.example.com/send", host: "a.example") }
        == "The webhook at sms.example.com would receive codes unencrypted. "
        + "Use https://, or http:// on this machine.")
    for url in ["https://sms.example.com/send", "http://127.0.0.1:8025/send", "http://localhost/send"] {
      #expect(problem { try SetupAnswers.messages(url, host: "a.example") } == nil)
    }
  }

  /// Attack: a token in the place of the account is repeated on a terminal that others see.
  @Test func anAccountThatIsNoneOfTwilioIsReported() {
    let said = problem { try SetupAnswers.messages("twilio://hunter2:b@c", host: "a.example") }
    #expect(said?.hasPrefix("The account of the twilio:// URL must be an account SID") ?? false)
    #expect(said?.contains("hunter2") == false)
  }

  /// Attack: the rest of a password is taken for a path, and the start of it for the password and the host.
  @Test(arguments: [
    "smtp://u:p@ss/w:rd@mail.example.com:587", "smtp://u:hunter2/x@mail.example.com",
    "smtp://u:hunter2?x@mail.example.com", "smtp://u:hunter2#x@mail.example.com", "smtp://mail.example.com/path",
    "smtp://mail.example.com?frm=x@y.z", "smtp://mail.example.com?from=x@y.z&from=a@b.c",
    "smtp://mail.example.com?from=x@y.z#f",
  ]) func anUnescapedPasswordOrAnUnknownPartOfAMailServerIsRefused(_ url: String) {
    #expect(
      problem { try SetupAnswers.messages(url, host: "a.example") }
        == "The smtp:// URL has a path, a query or a fragment that has no meaning. "
        + "Only ?from=login@example.com may follow its host and port. "
        + "In a password, write / as %2F, @ as %40, ? as %3F, # as %23 and % as %25.")
  }

  @Test(arguments: ["smtp://u:hun@ter2@mail.example.com", "smtp://u:hunter%2@mail.example.com"])
  func aSecondAtOrABrokenEscapeIsRefused(_ url: String) {
    #expect(
      problem { try SetupAnswers.messages(url, host: "a.example") }
        == "The user or the password of the smtp:// URL has an unescaped @ or %. "
        + "In a password, write / as %2F, @ as %40, ? as %3F, # as %23 and % as %25.")
  }

  @Test func anEscapedPasswordIsTaken() throws {
    let url = "smtps://me:p%40ss%2Fw:rd%25@mail.example.com/?from=login%2Ba@example.com"
    #expect(
      try SetupAnswers.messages(url, host: "a.example")
        == .smtp(host: "mail.example.com", port: 465, user: "me", password: "p@ss/w:rd%", from: "login+a@example.com"))
    #expect(
      try SetupAnswers.messages("smtp://[::1]:2525", host: "a.example")
        == .smtp(host: "[::1]", port: 2525, user: nil, password: nil, from: "no-reply@a.example"))
    #expect(
      problem { try SetupAnswers.messages("twilio://AC11:b@+15550100?from=+15550101", host: "a.example") }?.contains(
        "Nothing may follow the sender.") ?? false)
  }

  /// A mail service refuses senders other than its user's address.
  @Test func theUserOfTheMailServerIsTheSender() throws {
    #expect(
      try SetupAnswers.messages("smtp://me%40corp.example:x@mail.example.com", host: "a.example")
        == .smtp(host: "mail.example.com", port: 587, user: "me@corp.example", password: "x", from: "me@corp.example"))
    #expect(
      try SetupAnswers.messages("smtp://me%40corp.example:x@mail.example.com?from=b@corp.example", host: "a.example")
        == .smtp(host: "mail.example.com", port: 587, user: "me@corp.example", password: "x", from: "b@corp.example"))
  }

  /// Attack: a key in the URL of a webhook is written to gateway.lua, which everybody on this machine can read.
  @Test(arguments: [
    "https://sms.example.com/send?key=hunter2", "https://u:hunter2@sms.example.com/send",
    "https://sms.example.com/send#hunter2", "https://u:12/hunter2@sms.example.com/send",
  ]) func aWebhookThatMayContainAKeyIsRefused(_ url: String) {
    #expect(
      problem { try SetupAnswers.messages(url, host: "a.example") }
        == "A webhook's URL must have no user, @, query or fragment, because a key in it would be readable in "
        + "gateway.lua. Leave it out, and then send the key as a header: add "
        + "headers = { [\"Authorization\"] = file \"secrets/webhook\" } to webhook in gateway.lua.")
  }

  @Test func aProblemOfTheConfigurationNamesTheOption() {
    let place = SourceLocation(file: "gateway.lua", line: 9)
    #expect(
      SetupAnswers.sentence(
        for: ConfigurationProblem(location: place, path: "region", message: "is not a country code"))
        == "--region: region is not a country code")
    #expect(
      SetupAnswers.sentence(for: ConfigurationProblem(location: place, path: "hsts", message: "is not a time"))
        == "gateway.lua:9: hsts: is not a time")
  }

  /// Attack: a password is repeated on a terminal that others see or in an installation log.
  @Test func passwordInAnAnswerIsNotRepeated() {
    #expect(problem { try SetupAnswers.store("mysql://root:hunter2@db/x") }?.contains("hunter2") == false)
  }

  /// Attack: a password in a world-readable file, or in version control with the configuration.
  @Test func passwordsAreWrittenToSeparateFiles() throws {
    let made = try files("postgres://moongate:hunter2@db.example.com/moongate", "smtp://me:s3cret@mail.example.com")
    #expect(made.secrets == ["secrets/store", "secrets/smtp.password"])
    #expect(made.files["secrets/smtp.password"] == "s3cret\n")
    let gateway = try #require(made.files["gateway.lua"])
    #expect(
      !gateway.contains("hunter2") && !gateway.contains("s3cret") && gateway.contains("store = file \"secrets/store\""))
    let folder = try ScratchFolder()
    try made.write(to: folder.path("new"))
    for name in made.secrets {
      let mode = try FileManager.default.attributesOfItem(atPath: folder.path("new/\(name)"))[.posixPermissions] as? Int
      #expect(mode == 0o600)
    }
  }

  /// Attack: an answer with a quote injects Lua code.
  @Test func answersAreEscapedInLua() throws {
    #expect(SetupFolder.quoted("a\"b\\c\nd") == #""a\"b\\c\010d""#)
    let gateway = try #require(
      try files("sqlite", "smtp://localhost", service: "@KEY@\" }, os = { \"").files["gateway.lua"])
    #expect(gateway.contains(#"service = "@KEY@\" }, os = { \"""#))
  }

  @Test func folderThatCannotBeMadeIsExplained() throws {
    #expect(
      problem { try files("sqlite", "smtp://localhost").write(to: "/proc/moongate/new") }
        == "/proc/moongate/new could not be written: No such file or directory. "
        + "Check the path: every part of it must be a folder, not a file or a dangling symbolic link.")
  }

  /// What to do depends on the reason. Foundation names only some of these errors itself.
  @Test(
    arguments: [
      (CocoaError(.fileWriteOutOfSpace), "No space left on device. Free some space on its disk."),
      (POSIXError(.ENOSPC), "No space left on device. Free some space on its disk."),
      (
        CocoaError(.fileWriteNoPermission),
        "Permission denied. Let this user write there, or choose another folder."
      ),
      (POSIXError(.EROFS), "Read-only file system. Choose a folder on a file system that can be written."),
    ] as [(any Error, String)]) func fileProblemSaysWhatToDo(_ error: any Error, _ sentence: String)
  {
    #expect(FileProblem(error).description == sentence)
  }

  @Test func aFolderThatIsNotEmptyIsLeftAlone() throws {
    let folder = try ScratchFolder()
    try folder.write("mine", to: "gateway.lua")
    #expect(
      problem { try files("sqlite", "smtp://localhost").write(to: folder.path) }
        == "\(folder.path) is not empty (gateway.lua) and is not overwritten. Choose an empty or a new folder."
    )
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["gateway.lua"])
    #expect(try String(contentsOfFile: folder.path("gateway.lua"), encoding: .utf8) == "mine")
  }

  @Test func anEmptyNameOfAFolderIsRefused() {
    #expect(
      problem { try SetupFolder.demandEmpty("") }
        == "The name of the folder is empty. Name the folder to write, for example /etc/moongate.")
  }

  @Test func aLinkThatLeadsNowhereIsRefusedAndStays() throws {
    let folder = try ScratchFolder()
    let link = folder.path("link")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: folder.path("nowhere"))
    #expect(
      problem { try files("sqlite", "smtp://localhost").write(to: link) }
        == "\(link) is a symbolic link to something that does not exist. Choose an empty or a new folder.")
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == folder.path("nowhere"))
  }

  @Test func onlyWhatWasWrittenIsRemoved() throws {
    let folder = try ScratchFolder()
    let setup = try files("sqlite", "smtp://me:s3cret@mail.example.com")
    try setup.write(to: folder.path("new")).remove()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [])
    let written = try setup.write(to: folder.path("new"))
    try folder.write("mine", to: "new/policies/mine.lua")
    written.remove()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("new")) == ["policies"])
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("new/policies")) == ["mine.lua"])
  }

  /// As root, the service could not create the folder of its key in the configuration folder, which root owns.
  @Test func theFolderOfTheStateIsMadeForTheService() throws {
    let folder = try ScratchFolder()
    #expect(try SetupFolder.makeState("data", in: folder.path) == folder.path + "/data")
    let mode = try FileManager.default.attributesOfItem(atPath: folder.path("data"))[.posixPermissions] as? Int
    #expect(mode == 0o700)
    #expect(try SetupFolder.makeState("data", in: folder.path) == nil, "an existing folder keeps its owner")
    #expect(try SetupFolder.makeState(folder.path("a"), in: "/elsewhere") == folder.path("a"))
    #expect(throws: StartProblem.self) { try SetupFolder.makeState(folder.path("b/c"), in: "/elsewhere") }
  }

  @Test func theNextStepsRunAsTheServiceUser() throws {
    let answers = try answers("sqlite", "smtp://localhost")
    let text = steps(answers, user: "moongate")
    #expect(text.contains("  3. sudo -u moongate moongate serve --config /srv/m "))
    #expect(text.contains("  4. sudo -u moongate moongate doctor --config /srv/m --to you@example.com"))
    #expect(steps(answers).contains("  4. moongate doctor --config /srv/m --to"))
    let bare = steps(answers, user: "moongate", tools: NextSteps.Tools(hasUnit: false, hasSudo: false))
    #expect(bare.contains("  3. runuser -u moongate -- moongate serve --config /srv/m "))
  }

  @Test func theNextStepsStartAnInstalledUnit() throws {
    let answers = try answers("sqlite", "smtp://localhost")
    let tools = NextSteps.Tools(hasUnit: true, hasSudo: true)
    let text = steps(answers, state: "/var/lib/moongate", user: "moongate", tools: tools)
    #expect(
      text.hasPrefix(
        """

        Next:
          1. Review /srv/m/gateway.lua and /srv/m/routes.lua.
          2. moongate check --config /srv/m
          3. As root: echo MOONGATE_CONFIG=/srv/m >> /etc/default/moongate
          4. As root: systemctl enable --now moongate
          5. sudo -u moongate moongate doctor --config /srv/m --to you@example.com
          6. After the first start, back up the new master key, apart from the store.
        """))
    let usual = steps(answers, folder: "/etc/moongate", state: "/var/lib/moongate", user: "moongate", tools: tools)
    #expect(!usual.contains("/etc/default/moongate") && usual.contains("  3. As root: systemctl enable --now moongate"))
    #expect(steps(answers, tools: tools).contains("  3. moongate serve --config /srv/m "), "the unit cannot read it")
  }

  /// The unit can write only its own folder, and its sockets have fixed ports.
  @Test func theNextStepsAdaptTheUnit() throws {
    let text = steps(
      try answers("sqlite", "smtp://localhost", upstream: "8080"), user: "moongate",
      tools: NextSteps.Tools(hasUnit: true, hasSudo: true))
    #expect(
      text.contains(
        """
          4. As root: systemctl edit moongate, and add these lines, because the unit can write only /var/lib/moongate:
               [Service]
               ReadWritePaths=/srv/m/data
          5. As root: systemctl edit moongate.socket, and add these lines, because the service has port 8080:
               [Socket]
               ListenStream=
               ListenStream=127.0.0.1:8081
          6. As root: systemctl enable --now moongate
        """))
  }

  @Test func aFolderIsQuotedInTheNextSteps() throws {
    let answers = try answers("sqlite", "smtp://localhost")
    let text = steps(
      answers, folder: "/srv/my site", state: "/var/lib/moongate", user: "moongate",
      tools: NextSteps.Tools(hasUnit: true, hasSudo: true))
    #expect(text.contains("  2. moongate check --config '/srv/my site'\n"))
    #expect(text.contains(#"echo 'MOONGATE_CONFIG="/srv/my site"' >> /etc/default/moongate"#))
    #expect(NextSteps.shellQuoted("it's") == #"'it'\''s'"#)
    #expect(NextSteps.unitQuoted(#"a "b\"#) == #""a \"b\\""#)
  }

  /// A service on the gateway's own port would be the gateway: every request would return to it.
  @Test func theGatewayLeavesThePortOfTheServiceFree() throws {
    let answers = try answers("sqlite", "smtp://localhost", upstream: "http://localhost:8080")
    let gateway = try #require(
      SetupFolder(answers, state: "data", region: nil, service: "Wallet").files["gateway.lua"])
    #expect(gateway.contains(#"listen = "127.0.0.1:8081""#) && gateway.contains(#"admin = "127.0.0.1:9901""#))
    let text = steps(answers)
    #expect(text.hasPrefix("The service has port 8080, so `listen` in gateway.lua is 127.0.0.1:8081.\n"))
    #expect(text.contains("reverse_proxy 127.0.0.1:8081") && text.contains("proxy_pass http://127.0.0.1:8081;"))
    let other = try self.answers("sqlite", "smtp://localhost", upstream: "127.0.0.1:9901")
    #expect((other.listenPort, other.adminPort) == (8080, 9902))
    #expect(try self.answers("sqlite", "smtp://localhost", upstream: "http://10.0.0.9:8080").listenPort == 8080)
  }

  @Test(arguments: [
    ("https://auth.example.com", "https://auth.example.com"), ("http://localhost:8080", "http://127.0.0.1:8080"),
  ]) func theGatewayIsNotItsOwnService(_ publicURL: String, _ upstream: String) {
    #expect(
      problem { try answers("sqlite", "smtp://localhost", publicURL: publicURL, upstream: upstream) }
        == "\(upstream) is the gateway itself, whose public URL is \(publicURL). Use the address at which the gateway "
        + "reaches the service, for example http://127.0.0.1:3000.")
  }

  @Test(arguments: [
    ("3000", "http://127.0.0.1:3000"), ("localhost:3000", "http://localhost:3000"),
    ("[::1]:3000", "http://[::1]:3000"), ("app.example.com:443", "https://app.example.com"),
  ]) func aServiceNeedsNoScheme(_ text: String, _ url: String) throws {
    #expect(try answers("sqlite", "smtp://localhost", upstream: text).upstream.description == url)
  }

  /// Browsers refuse passkeys for an IP address.
  @Test(arguments: ["https://192.168.1.5", "https://[2001:db8::5]:8443"])
  func passkeysAreLeftOutForAnAddress(_ publicURL: String) throws {
    let answers = try answers("sqlite", "smtp://localhost?from=login@example.com", publicURL: publicURL)
    let files = SetupFolder(answers, state: "data", region: nil, service: "Wallet").files
    #expect(files["policies/passkey.lua"] == nil && files["policies/totp.lua"] != nil)
    #expect(files.values.allSatisfy { !$0.lowercased().contains("passkey") })
    #expect(files["flows/login.lua"]?.contains(#"any_of { "email_code" }"#) ?? false)
    #expect(steps(answers).hasPrefix("Passkeys are left out: browsers refuse them for an IP address."))
    let named = try self.files("sqlite", "smtp://localhost").files
    #expect(named["flows/login.lua"]?.contains(#"any_of { "email_code", "passkey" }"#) ?? false)
    #expect(named["flows/step_up.lua"]?.contains(#"any_of { "email_code", "passkey", "totp" }"#) ?? false)
    #expect(named["accounts.lua"]?.contains("\n\n  -- What people are offered to set up") ?? false)
    #expect(named["accounts.lua"]?.contains("offer = { { \"passkey\", every = \"30d\" } },\n\n  -- How") ?? false)
  }

  @Test func theRegionIsWrittenOnlyForPhones() throws {
    let mail = try answers("sqlite", "smtp://localhost")
    #expect(mail.defaultRegion == nil && !steps(mail).contains("region"))
    let text = try #require(SetupFolder(mail, state: "data", region: nil, service: "W").files["gateway.lua"])
    #expect(!text.contains("region") && text.contains("\"data/master.key\",\n\n  -- What messages and pages call"))
    let phones = try answers("sqlite", "https://sms.example.com/send")
    #expect(phones.defaultRegion == "IN")
    #expect(steps(phones).hasPrefix("Phone numbers without + count as numbers of IN. To change this, edit `region`"))
  }

  /// Root's umask may be strict: without this, the service could not read what root has written for it.
  @Test func theGroupOfTheServiceCanReadWhatRootWrites() throws {
    let folder = try ScratchFolder()
    try folder.write("x", to: "new/strict.lua")
    try folder.write("x", to: "new/group.lua")
    try folder.write("x", to: "new/open.lua")
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("new/link"), withDestinationPath: folder.path("strict"))
    let modes = [("new", 0o700), ("new/strict.lua", 0o600), ("new/group.lua", 0o660), ("new/open.lua", 0o644)]
    for (path, mode) in modes { chmod(folder.path(path), mode_t(mode)) }
    ServiceUser.allowReading(modes.map { folder.path($0.0) } + [folder.path("new/link")], to: getegid())
    let after = try modes.map { path, _ in
      try FileManager.default.attributesOfItem(atPath: folder.path(path))[.posixPermissions] as? Int
    }
    #expect(after == [0o750, 0o640, 0o640, 0o644], "the group never writes")
  }

  @Test func aPortAloneMeansTheSameAsWithTheHost() throws {
    for port in ["80", "443", "3000"] {
      let alone = try answers("sqlite", "smtp://localhost", upstream: port).upstream
      #expect(try alone == answers("sqlite", "smtp://localhost", upstream: "127.0.0.1:\(port)").upstream)
    }
  }

  @Test func theFoldersAboveAreRemovedToo() throws {
    let folder = try ScratchFolder()
    let written = try files("sqlite", "smtp://localhost").write(to: folder.path("a/b/new"))
    #expect(written.folders.starts(with: ["a", "a/b", "a/b/new"].map { folder.path($0) }))
    written.remove()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [])
  }
}
