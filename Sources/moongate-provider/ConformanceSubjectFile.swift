import Foundation
import MoongateConformance
import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateSDK

/// The subject file of a provider's author: the identifiers that the conformance suite uses, in several spellings, and
/// the answers to the provider's steps. Every member is optional.
/// ```json
/// { "spellings": [{"email": "a@x.example"}, {"email": "A@X.example"}], "others": [{"email": "b@x.example"}],
///   "malformed_begins": [{"email": "nobody"}], "malformed_submits": [{"word": ""}],
///   "right": {"word": "pigeon"}, "wrong": {"word": "penguin"}, "sets_up": false, "one_time": true,
///   "lifetime": "30s", "record": "r1",
///   "uncompared": ["nickname"], "settings": {"loft": "north", "birds": 3}, "secrets": {"token": "t0ken"},
///   "sends_by": {"site": "url"}, "site_answers": {"/api/v4/users/me": {"id": "bot"}} }
/// ```
/// A value of `right` and `wrong` can be computed: `{"from_shown": "list.0"}`, `{"totp_of": "key"}`, `{"program":
/// ["./answer.py"]}`.
struct ConformanceSubjectFile {
  /// How a program sends messages. The suite redirects them by the setting that names the destination.
  enum DeliveryChannel: Sendable, Equatable {
    /// The setting is the URL of a site. The suite replaces it with its own server.
    case site(setting: String)
    /// The setting is the path of a file with one line per message. The suite replaces it with a file in the program's
    /// folder.
    case file(setting: String)

    var setting: String {
      switch self {
      case .site(let setting), .file(let setting): setting
      }
    }
  }

  private let text: SubjectText
  private let spellings: [[String: InputValue]]?
  private let others: [[String: InputValue]]?
  private let malformedBegins: [[String: InputValue]]?
  private let malformedSubmits: [[String: InputValue]]?
  private let right: [String: ScriptedValue]?
  private let wrong: [String: ScriptedValue]?
  private let keep: [String: String]
  private let settings: [String: SettingValue]
  private let secrets: [String: String]
  private let setsUp: Bool?
  private let isOneTime: Bool?
  private let lifetime: Duration?
  private let record: String?
  private let oldRecords: [Int: [UInt8]]
  private let uncompared: Set<String>
  /// The JSON answers of the site, by path prefix.
  let siteAnswers: [String: [UInt8]]
  /// How the program sends messages; nil if the suite cannot observe them.
  let sendsBy: DeliveryChannel?

  /// The known members of the file.
  private static let members: Set<String> = [
    "spellings", "others", "right", "wrong", "keep", "settings", "secrets", "lifetime", "record", "old_records",
    "malformed_begins",
    "malformed_submits", "sets_up",
    "one_time", "uncompared", "sends_by", "site_answers",
  ]

  /// - Throws: an error with the place of the mistake and how to correct it.
  init(path: String) throws(StartProblem) {
    text = try SubjectText(path: path)
    for name in text.members.keys.sorted() where !Self.members.contains(name) {
      throw text.problem(name, "is not a member of a subject file\(Suggestion.phrase(for: name, among: Self.members))")
    }
    spellings = try text.inputs("spellings")
    others = try text.inputs("others")
    malformedBegins = try text.inputs("malformed_begins")
    malformedSubmits = try text.inputs("malformed_submits")
    let script = ConformanceSubjectScript(text: text)
    keep = try text.texts("keep") ?? [:]
    right = try script.values("right", keep: keep)
    wrong = try script.values("wrong", keep: keep)
    secrets = try text.texts("secrets") ?? [:]
    setsUp = try text.flag("sets_up")
    isOneTime = try text.flag("one_time")
    record = try text.text("record")
    oldRecords = try Self.oldRecords(text)
    lifetime = try Self.lifetime(text)
    uncompared = Set(try text.list("uncompared") ?? [])
    var settings: [String: SettingValue] = [:]
    for (name, value) in try text.object("settings") ?? [:] {
      guard let setting = value.setting else {
        throw text.problem("settings.\(name)", "must be a string, a number, true or false, or a list of strings")
      }
      settings[name] = setting
    }
    self.settings = settings
    sendsBy = try Self.sendsBy(text)
    siteAnswers = try (text.object("site_answers") ?? [:]).mapValues(\.json)
  }

  private static func lifetime(_ text: SubjectText) throws(StartProblem) -> Duration? {
    guard let said = try text.text("lifetime") else { return nil }
    guard let lifetime = Duration(asWritten: said) else {
      throw text.problem("lifetime", "is not a duration: write a number with ms, s, m, h or d, for example \"30s\"")
    }
    return lifetime
  }

  private static func oldRecords(_ text: SubjectText) throws(StartProblem) -> [Int: [UInt8]] {
    var records: [Int: [UInt8]] = [:]
    for (name, record) in try text.texts("old_records") ?? [:] {
      guard let version = Int(name), version > 0 else {
        throw text.problem("old_records.\(name)", "is not a record version: write {\"1\": \"RECORD\"}")
      }
      records[version] = Array(record.utf8)
    }
    return records
  }

  private static func sendsBy(_ text: SubjectText) throws(StartProblem) -> DeliveryChannel? {
    guard let said = try text.texts("sends_by") else { return nil }
    switch (said["site"], said["file"], said.count) {
    case (let site?, nil, 1): return .site(setting: site)
    case (nil, let file?, 1): return .file(setting: file)
    default:
      throw text.problem(
        "sends_by",
        "must be {\"site\": \"SETTING\"} or {\"file\": \"SETTING\"}, with the setting that names the destination")
    }
  }

  /// Overrides the values derived from the descriptor with those of the file.
  func change(_ subject: inout ConformanceSubject) {
    subject.spellings = spellings ?? subject.spellings
    subject.others = others ?? subject.others
    subject.malformedBegins = malformedBegins ?? subject.malformedBegins
    subject.malformedSubmits = malformedSubmits ?? subject.malformedSubmits
    subject.answers(right: right, wrong: wrong, keeping: keep) { [text] path in text.place(path) }
    subject.settings.merge(settings) { _, new in new }
    subject.secrets.merge(secrets) { _, new in new }
    subject.setsUp = setsUp ?? subject.setsUp
    subject.isOneTime = isOneTime ?? subject.isOneTime
    subject.lifetime = lifetime ?? subject.lifetime
    subject.record = record.map { Array($0.utf8) } ?? subject.record
    subject.oldRecords.merge(oldRecords) { _, new in new }
    subject.uncompared.formUnion(uncompared)
  }
}
