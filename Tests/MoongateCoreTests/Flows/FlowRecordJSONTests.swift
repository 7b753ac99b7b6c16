import Foundation
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateCore

/// The stored JSON of flows. It must be the JSON of `JSONEncoder`, which encodes the accounts and identifiers of
/// deleted users for which stored flows are searched.
@Suite struct FlowRecordJSONTests {
  /// All characters that an encoder treats differently, and some of several bytes.
  private static let text = String(String.UnicodeScalarView((0..<128).compactMap { Unicode.Scalar($0) })) + "é\u{2028}🌙"

  private static let now = ManualClock.start
  private static let phone = ProviderName(test: "phone_otp")
  private static let account = AccountVersion(id: "ac_1/\(text)", epoch: 3)
  private static let identifier = Identifier(
    kind: .federated, value: "https://accounts.example.org \(text)", display: text, attributes: [text: text],
    groups: [text])
  private static let hash = TokenHash(of: "t".utf8)
  private static let sealed = SealedBytes([0, 127, 255])
  private static let code = CodeRule(length: 6, alphabet: .letters, lifetime: .milliseconds(-1))
  private static let challenge = Challenge(mac: [1, 2], issuedAt: now, expiresAt: now + .seconds(1), rule: code)
  private static let passed = {
    var passed = PassedStep(provider: phone, at: now, identifier: text, isMultiFactor: true)
    passed.tooNewUntil = now + .seconds(1)
    passed.siteSession = text
    return passed
  }()

  /// A record without anything that is optional.
  private static let empty = FlowRecord(
    id: hash,
    definition: FlowDefinition(
      name: "", purpose: .signIn, account: .existing, steps: [], lifetime: .zero,
      session: SessionRule(lifetime: .zero, idle: .zero), next: NextPaths(new: "", returning: ""),
      location: SourceLocation(file: "flows/f.lua", line: 1)),
    codes: [:], createdAt: Timestamp(milliseconds: -1), returnTo: nil, browser: nil, network: [], account: nil)

  private static var step: StepRecord {
    var step = StepRecord(
      provider: phone, identifier: identifier, isSkippable: true, account: account, challenge: challenge, state: [7])
    step.holder = account
    step.claimants = [account]
    step.alternatives = [SentCode(provider: phone, challenge: challenge)]
    step.unreachable = [phone]
    step.fields = [
      InputField(name: text, kind: .choice, length: 4, choices: [InputChoice(value: text, label: text)])
    ]
    step.redirectTo = text
    step.shown = sealed
    step.wait = StepWait(interval: .seconds(3), from: now)
    step.returned = PostedCallback(handle: hash, fields: sealed, expiresAt: now)
    step.judgedBy = StoredRecord.Judged(hash: hash)
    return step
  }

  /// A record with everything that it can hold.
  private static var full: FlowRecord {
    let rule = StepRule(
      choices: [phone], isSkippable: true, when: FunctionName(text), requirement: .enroll, isFallback: true)
    var record = FlowRecord(
      id: hash,
      definition: FlowDefinition(
        name: text, purpose: .factor(phone, .set), account: .any, steps: [rule, rule], lifetime: .seconds(900),
        session: SessionRule(
          lifetime: .seconds(31_536_000), idle: .milliseconds(1),
          remember: RememberedTimes(lifetime: .seconds(31_536_001), idle: .milliseconds(2))),
        next: NextPaths(new: text, returning: text), location: SourceLocation(file: "flows/f.lua", line: 1),
        registers: [phone]),
      codes: [phone: CodeTexts(.test(phone, code: code, message: text))], createdAt: now, returnTo: text,
      browser: hash, network: [10, 0], account: account, startedIn: text,
      grant: Grant(
        app: App(id: text, name: text, redirectURIs: [], consent: .never), redirect: text,
        challenge: Base64URL.encode([UInt8](repeating: 1, count: 32)), scopes: [text]))
    record.version = 2
    record.status = .complete
    record.position = 1
    record.step = step
    record.accountChoice = AccountChoice(provider: phone, identifier: identifier, accounts: [account])
    record.passed = [passed, passed]
    record.proved = [identifier]
    record.pendingProofs.claimed = [identifier]
    record.pendingProofs.exposed = [phone]
    record.pendingProofs.rechecks = [phone: PendingRecheck(identity: identifier, sealed: [0, 9, 255], at: now)]
    record.pendingProofs.firstName = text
    record.pendingProofs.lastName = text
    record.pendingProofs.records = [
      phone: StoredRecord(sealed: [0, 9, 255], judgedBy: StoredRecord.Judged(hash: hash), isRenewal: true)
    ]
    record.basis.held = [identifier]
    record.basis.introduced = [passed]
    record.basis.holder = account
    record.grantCode = GrantCode(hash: hash, expiresAt: now, factors: [phone])
    record.isRemembered = true
    record.invitation = hash
    record.isByOperator = true
    record.isNewAccount = true
    record.completedNext = text
    record.origin = text
    record.grant?.allow()
    record.registered = [phone]
    record.recordFacts([text: text], of: phone)
    return record
  }

  /// Records in which one part has nothing that is optional.
  private static var sparse: [FlowRecord] {
    var records = [FlowRecord](repeating: full, count: 3)
    records[0].step = StepRecord(provider: phone, identifier: nil, isSkippable: false, account: nil, challenge: nil)
    records[0].basis = ProofBasis(epoch: nil)
    records[0].grantCode = GrantCode(hash: hash, expiresAt: now, factors: [])
    records[1].steps = [StepRule(choices: [], isSkippable: false, when: nil)]
    records[1].pendingProofs = PendingProofs()
    records[1].passed = [PassedStep(provider: phone, at: now)]
    records[2].pendingProofs.records = [phone: StoredRecord(sealed: nil)]
    records[2].step?.judgedBy = StoredRecord.Judged(hash: nil)
    records[2].step?.fields = [InputField(name: "", kind: .text, isRequired: false)]
    return records
  }

  /// `JSONEncoder` leaves out what is nil. A field that `full` does not fill would therefore not be compared.
  @Test func fullRecordFillsEveryField() { #expect(Self.emptyFields(of: Self.full, "record") == []) }

  @Test(arguments: [full, empty] + sparse) func jsonEqualsThatOfJSONEncoder(record: FlowRecord) throws {
    let ours = try JSONSerialization.jsonObject(with: Data(record.json)) as? NSDictionary
    let encoders = try JSONSerialization.jsonObject(with: JSONEncoder().encode(record)) as? NSDictionary
    #expect(ours != nil && ours == encoders)
  }

  @Test(arguments: [full, empty] + sparse) func storedRecordDecodesToTheSameRecord(record: FlowRecord) throws {
    #expect(try JSONDecoder().decode(FlowRecord.self, from: Data(record.json)) == record)
  }

  /// Attack: a deleted user's flow is not found, because its record spells the identifier in another way than the
  /// encoder of the search term.
  @Test(arguments: [account.id, identifier.value]) func recordContainsStringsAsEncoded(text: String) throws {
    #expect(Data(Self.full.json).range(of: try JSONEncoder().encode(text)) != nil)
  }

  @Test(arguments: [[], [passed], [passed, PassedStep(provider: phone, at: now)]])
  func jsonOfPassedStepsEqualsThatOfJSONEncoder(steps: [PassedStep]) throws {
    let ours = try JSONSerialization.jsonObject(with: Data(steps.json)) as? NSArray
    let encoders = try JSONSerialization.jsonObject(with: JSONEncoder().encode(steps)) as? NSArray
    #expect(ours != nil && ours == encoders)
    #expect(try JSONDecoder().decode([PassedStep].self, from: Data(steps.json)) == steps)
  }

  /// The paths of values that are nil or without content.
  private static func emptyFields(of value: Any, _ path: String) -> [String] {
    let mirror = Mirror(reflecting: value)
    switch mirror.displayStyle {
    case .optional, .collection, .set, .dictionary: if mirror.children.isEmpty { return [path] }
    default: break
    }
    return mirror.children.flatMap { emptyFields(of: $0.value, "\(path).\($0.label ?? "")") }
  }
}
