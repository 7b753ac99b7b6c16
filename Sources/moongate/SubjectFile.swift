import Foundation
import MoongateConformance
import MoongateSDK

/// What a provider's author tells the suite in a file: people, in several spellings, and what they answer. Every member may be left out.
/// ```json
/// { "spellings": [{"email": "a@x.example"}, {"email": "A@X.example"}], "others": [{"email": "b@x.example"}],
///   "malformed_begins": [{"email": "nobody"}], "malformed_submits": [{"word": ""}],
///   "right": {"word": "pigeon"}, "wrong": {"word": "penguin"}, "sets_up": false, "one_time": true, "lifetime": "30s", "record": "r1",
///   "settings": {"loft": "north", "birds": 3}, "secrets": {"token": "t0ken"},
///   "sends_by": {"site": "url"}, "site_answers": {"/api/v4/users/me": {"id": "bot"}} }
/// ```
struct SubjectFile: Decodable {
  /// How a program sends, so that the suite can see it: by which setting it is told where to.
  enum SendsBy: Sendable, Equatable {
    /// The address of a site: the suite's own takes its place.
    case site(setting: String)
    /// The path of a file, one line for each message: one in the program's folder takes its place.
    case file(setting: String)

    var setting: String {
      switch self {
      case .site(let setting), .file(let setting): setting
      }
    }
  }

  private enum Value: Decodable {
    case flag(Bool)
    case number(Double)
    case text(String)
    case list([String])
    case other

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let flag = try? container.decode(Bool.self) {
        self = .flag(flag)
      } else if let number = try? container.decode(Double.self) {
        self = .number(number)
      } else if let text = try? container.decode(String.self) {
        self = .text(text)
      } else if let list = try? container.decode([String].self) {
        self = .list(list)
      } else {
        self = .other
      }
    }

    var input: InputValue {
      switch self {
      case .flag(let flag): .flag(flag)
      case .text(let text): .text(text)
      case .number, .list, .other: .other
      }
    }

    var setting: SettingValue? {
      switch self {
      case .flag(let flag): .flag(flag)
      case .number(let number): .number(number)
      case .text(let text): .text(text)
      case .list(let list): .list(list)
      case .other: nil
      }
    }
  }

  private struct Outlet: Decodable {
    let site: String?
    let file: String?
  }

  private let spellings: [[String: Value]]?
  private let others: [[String: Value]]?
  private let malformedBegins: [[String: Value]]?
  private let malformedSubmits: [[String: Value]]?
  private let right: [String: Value]?
  private let wrong: [String: Value]?
  private let settings: [String: Value]?
  private let secrets: [String: String]?
  private let setsUp: Bool?
  private let isOneTime: Bool?
  private let lifetime: String?
  private let record: String?
  private let outlet: Outlet?
  /// What the site answers, as JSON, by the beginning of a path.
  private(set) var siteAnswers: [String: [UInt8]] = [:]
  /// How the program sends; nil: the suite cannot see it.
  private(set) var sendsBy: SendsBy?
  private var life: Duration?

  private enum CodingKeys: String, CodingKey {
    case spellings, others, right, wrong, settings, secrets, lifetime, record
    case malformedBegins = "malformed_begins"
    case malformedSubmits = "malformed_submits"
    case setsUp = "sets_up"
    case isOneTime = "one_time"
    case outlet = "sends_by"
  }

  /// Members that are looked at.
  private static let members: Set<String> = [
    "spellings", "others", "right", "wrong", "settings", "secrets", "lifetime", "record", "malformed_begins", "malformed_submits", "sets_up",
    "one_time", "sends_by", "site_answers",
  ]

  /// - Throws: a sentence where the file cannot be read.
  init(path: String) throws(StartProblem) {
    guard let data = FileManager.default.contents(atPath: path) else { throw StartProblem("There is no file \(path).", status: .couldNotRun) }
    let problem = { (what: String) in StartProblem("\(path): \(what)", status: .couldNotRun) }
    let object: [String: Any]?
    do {
      self = try JSONDecoder().decode(Self.self, from: data)
      object = try JSONSerialization.jsonObject(with: data) as? [String: Any]
    } catch {
      throw problem("this is no subject: it is a JSON object such as {\"right\": {\"word\": \"pigeon\"}, \"wrong\": {\"word\": \"penguin\"}}.")
    }
    // A member that is misspelled would tell the suite nothing, and nobody.
    for name in (object ?? [:]).keys.sorted() where !Self.members.contains(name) {
      throw problem("`\(name)` is nothing that a subject says; there are \(Self.members.sorted().joined(separator: ", ")).")
    }
    switch (outlet?.site, outlet?.file) {
    case (let site?, nil): sendsBy = .site(setting: site)
    case (nil, let file?): sendsBy = .file(setting: file)
    case (nil, nil) where outlet == nil: sendsBy = nil
    default: throw problem("`sends_by` is {\"site\": \"SETTING\"} or {\"file\": \"SETTING\"}.")
    }
    if let answers = object?["site_answers"] {
      guard let answers = answers as? [String: Any] else { throw problem("`site_answers` is what the site answers, by the beginning of a path.") }
      for (path, answer) in answers {
        siteAnswers[path] = (try? JSONSerialization.data(withJSONObject: answer, options: .fragmentsAllowed)).map(Array.init)
      }
    }
    if let lifetime {
      guard let match = lifetime.wholeMatch(of: /([0-9]{1,9})(ms|s|m|h|d)/), let count = Int64(match.1) else {
        throw problem("`lifetime` is a duration, such as \"30s\".")
      }
      let unit: [Substring: Int64] = ["ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000]
      life = .milliseconds(count * (unit[match.2] ?? 1))
    }
  }

  /// Puts what the file says over what was made of the descriptor.
  func change(_ subject: inout ConformanceSubject) {
    let inputs = { (list: [[String: Value]]?) in list?.map { $0.mapValues(\.input) } }
    subject.spellings = inputs(spellings) ?? subject.spellings
    subject.others = inputs(others) ?? subject.others
    subject.malformedBegins = inputs(malformedBegins) ?? subject.malformedBegins
    subject.malformedSubmits = inputs(malformedSubmits) ?? subject.malformedSubmits
    if let answer = right?.mapValues(\.input) { subject.right = { _ in answer } }
    if let answer = wrong?.mapValues(\.input) { subject.wrong = { _ in answer } }
    subject.settings.merge((settings ?? [:]).compactMapValues(\.setting)) { _, new in new }
    subject.secrets.merge(secrets ?? [:]) { _, new in new }
    subject.setsUp = setsUp ?? subject.setsUp
    subject.isOneTime = isOneTime ?? subject.isOneTime
    subject.lifetime = life ?? subject.lifetime
    subject.record = record.map { Array($0.utf8) } ?? subject.record
  }
}
