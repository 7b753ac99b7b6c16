import Foundation
import MoongateCore
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateStore

/// A server that breaks off at any point, or answers nonsense. Whatever was committed is never reported as failed,
/// nothing else is reported as committed, and what may have been committed is not executed again.
@Suite struct PostgresBrokenServerTests {
  typealias ScriptedAction = FakePostgres.ScriptedAction

  /// The result that the caller gets.
  enum Outcome: Equatable { case done, unknown, fault(String) }

  /// What the server does to a statement on the first connection, and the expected result.
  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let place: FakePostgres.Statement.Kind
    let action: ScriptedAction
    let outcome: Outcome

    init(_ name: String, at place: FakePostgres.Statement.Kind, _ action: ScriptedAction, _ outcome: Outcome) {
      (testDescription, self.place, self.action, self.outcome) = ("\(name) at \(place)", place, action, outcome)
    }
  }

  private static let hangsUp = ScriptedAction(carriesOut: false, answer: .none, then: .hangsUp)
  private static let diesFast = ScriptedAction(carriesOut: false, answer: .none, then: .hangsUp, flushes: false)
  private static let keepsSilent = ScriptedAction(carriesOut: false, answer: .none, then: .isSilent)
  /// The first half of the message for `INSERT 0 1` or COMMIT.
  private static let half: [UInt8] = [UInt8(ascii: "C"), 0, 0, 0, 11, UInt8(ascii: "C"), UInt8(ascii: "O")]

  private static func error(
    _ code: String, _ severity: String = "ERROR", carriesOut: Bool = false, then: ScriptedAction.Then = .goesOn
  )
    -> ScriptedAction
  {
    ScriptedAction(carriesOut: carriesOut, answer: .error(code, severity: severity), then: then)
  }

  /// Writes a number and rolls back without waiting for the answer.
  private static func giveUp(_ number: Int64, in database: PostgresDatabase) async {
    struct GivenUp: Error {}
    await #expect(throws: GivenUp.self) {
      try await database.write(at: ManualClock.start) { one in
        try one.run("INSERT INTO note (number) VALUES (?1)", [.integer(number)])
        throw GivenUp()
      }
    }
  }

  private static let silent = Outcome.fault("PostgreSQL does not answer")

  /// Nothing sent before this point could have been committed: the transaction is retried on another connection.
  static let early = [FakePostgres.Statement.Kind.begin, .read].flatMap { place in
    [
      Case("hangs up", at: place, hangsUp, .done), Case("dies", at: place, diesFast, .done),
      Case("is shut down", at: place, error("57P01", "FATAL", then: .hangsUp), .done),
      Case("panics", at: place, error("XX000", "PANIC", then: .hangsUp), .done),
      Case("meets another", at: place, error("40001"), .done),
      Case("finds a deadlock", at: place, error("40P01"), .done),
      Case("refuses", at: place, error("42P01"), .fault("PostgreSQL: a table is missing (42P01)")),
      Case("keeps silent", at: place, keepsSilent, silent),
      Case(
        "says half", at: place, ScriptedAction(carriesOut: false, answer: .bytes(Self.half), then: .isSilent), silent),
      Case(
        "says half and hangs up", at: place,
        ScriptedAction(carriesOut: false, answer: .bytes(Self.half), then: .hangsUp), .done),
    ]
  }

  /// COMMIT was sent together with it: only an answer of the server proves that it was not executed.
  static let late = [
    Case("hangs up", at: .write, hangsUp, .unknown), Case("dies", at: .write, diesFast, .unknown),
    Case("is shut down", at: .write, error("57P01", "FATAL", then: .hangsUp), .done),
    Case("panics", at: .write, error("53100", "PANIC", then: .hangsUp), .done),
    Case("is lost to a pooler", at: .write, error("08P01", "FATAL", then: .hangsUp), .unknown),
    Case("meets another", at: .write, error("40001"), .done),
    Case("refuses", at: .write, error("23514"), .fault("PostgreSQL: error 23514")),
    Case("refuses and hangs up", at: .write, error("23514", then: .hangsUp), .done),
    Case("keeps silent", at: .write, keepsSilent, .unknown),
    Case("says half", at: .write, ScriptedAction(answer: .bytes(Self.half), then: .isSilent), .unknown),
  ]

  static let atCommit =
    [false, true].flatMap { carriesOut in
      [
        Case("hangs up", at: .commit, ScriptedAction(carriesOut: carriesOut, answer: .none, then: .hangsUp), .unknown),
        Case(
          "dies", at: .commit, ScriptedAction(carriesOut: carriesOut, answer: .none, then: .hangsUp, flushes: false),
          .unknown),
        Case("is shut down", at: .commit, error("57P01", "FATAL", carriesOut: carriesOut, then: .hangsUp), .unknown),
        Case(
          "panics, its disk is full", at: .commit, error("53100", "PANIC", carriesOut: carriesOut, then: .hangsUp),
          .unknown),
        Case(
          "fails in a way of its own", at: .commit, error("XX000", "FATAL", carriesOut: carriesOut, then: .hangsUp),
          .unknown),
        Case(
          "keeps silent", at: .commit, ScriptedAction(carriesOut: carriesOut, answer: .none, then: .isSilent), .unknown),
        Case(
          "says half", at: .commit, ScriptedAction(carriesOut: carriesOut, answer: .bytes(Self.half), then: .isSilent),
          .unknown),
        Case(
          "says half and hangs up", at: .commit,
          ScriptedAction(carriesOut: carriesOut, answer: .bytes(Self.half), then: .hangsUp), .unknown),
        Case(
          "says something else", at: .commit, ScriptedAction(carriesOut: carriesOut, answer: .command("SELECT 1")),
          .unknown),
      ]
    } + [
      Case(
        "takes all back", at: .commit, ScriptedAction(carriesOut: false, answer: .command("ROLLBACK")),
        .fault("PostgreSQL: error 25P02")),
      Case("meets another", at: .commit, error("40001"), .done),
      Case("refuses", at: .commit, error("23514"), .fault("PostgreSQL: error 23514")),
    ]

  @Test(arguments: early + late + atCommit) func aTransactionEndsAsItDid(_ one: Case) async throws {
    let strikes = Mutex(0)
    let server = try FakePostgres { statement in
      statement.connection == 1 && statement.kind == one.place && !statement.text.contains("set_config")
        && counted(strikes) == 1
        ? one.action : ScriptedAction()
    }
    defer { server.end() }
    let database = try Self.database(server)
    #expect(await Self.write(7, to: database) == one.outcome)
    #expect(strikes.withLock { $0 } > 0, "the statement came")
    let committed = server.committed
    switch one.outcome {
    case .done: #expect(committed == [7])
    case .unknown:
      #expect(committed == (one.place == .commit && one.action.carriesOut ? [7] : []), "it is not carried out again")
    case .fault: #expect(committed == [])
    }
    // The database recovers by itself.
    let end = ContinuousClock.now + .seconds(10)
    while await Self.write(8, to: database) != .done { try #require(ContinuousClock.now < end) }
    #expect(server.committed == committed + [8])
    try database.close()
  }

  static let nonsense: [[UInt8]] = [
    Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8), [UInt8](repeating: 0, count: 64),
    [UInt8](repeating: 0xff, count: 64),
    // ReadyForQuery before the answer; a length below the minimum; an error and a row without content; the start of a
    // COPY.
    [UInt8(ascii: "Z"), 0, 0, 0, 5, UInt8(ascii: "I")], [UInt8(ascii: "C"), 0, 0, 0, 1],
    [UInt8(ascii: "E"), 0, 0, 0, 5, 0],
    [UInt8(ascii: "D"), 0, 0, 0, 6, 0, 0], [UInt8(ascii: "D"), 0, 0, 0, 4], [UInt8(ascii: "G"), 0, 0, 0, 7, 0, 0, 0],
    [UInt8(ascii: "C"), 0, 0, 0, 4], [UInt8(ascii: "T"), 0, 0, 0, 6, 0x7f, 0xff], [UInt8(ascii: "1"), 0, 0, 0, 4],
    [UInt8(ascii: "I"), 0, 0, 0, 4],
  ]

  /// Afterwards the server hangs up, stays silent, or continues as if nothing had happened.
  @Test(arguments: nonsense, [ScriptedAction.Then.hangsUp, .isSilent, .goesOn]) func invalidResponseIsNotASuccess(
    _ bytes: [UInt8], then: ScriptedAction.Then
  )
    async throws
  {
    for place in [FakePostgres.Statement.Kind.read, .write, .commit] {
      let strikes = Mutex(0)
      let server = try FakePostgres { statement in
        statement.connection == 1 && statement.kind == place && !statement.text.contains("set_config")
          && counted(strikes) == 1
          ? ScriptedAction(carriesOut: false, answer: .bytes(bytes), then: then) : ScriptedAction()
      }
      defer { server.end() }
      let database = try Self.database(server)
      let outcome = await Self.write(7, to: database)
      switch place {
      case .read: #expect(outcome != .unknown)
      // The server may have committed the write: the result is unknown.
      default: #expect(outcome == .unknown, "at \(place)")
      }
      #expect(server.committed == (outcome == .done ? [7] : []))
      try database.close()
    }
  }

  /// Attack: a server breaks off with an error for an earlier batch without a waiting caller, after executing the next
  /// batch. That one must neither be executed twice nor be reported with the other's error.
  @Test(arguments: ["22012", "23505", "40001", "42P01"]) func errorOfAnUnawaitedBatchDoesNotAffectTheNext(
    code: String
  ) async throws {
    let server = try FakePostgres { statement in
      statement.connection == 1 && statement.number == 1
        ? ScriptedAction(carriesOut: false, answer: .error(code), then: .isMute) : ScriptedAction()
    }
    defer { server.end() }
    let database = try Self.database(server)
    await Self.giveUp(1, in: database)
    #expect(await Self.write(7, to: database, reads: false) == .unknown)
    #expect(server.committed == [7])
    #expect(await Self.write(8, to: database) == .done)
    #expect(server.committed == [7, 8])
    try database.close()
  }

  /// A server that stopped while such a batch was unanswered has executed nothing after it.
  @Test func serverCrashEndsLaterBatches() async throws {
    let server = try FakePostgres { statement in
      statement.connection == 1 && statement.number == 1
        ? Self.error("57P01", "FATAL", then: .hangsUp) : ScriptedAction()
    }
    defer { server.end() }
    let database = try Self.database(server)
    await Self.giveUp(1, in: database)
    #expect(await Self.write(7, to: database, reads: false) == .done)
    #expect(server.committed == [7])
    try database.close()
  }

  @Test(arguments: [hangsUp, diesFast, error("57P01", "FATAL", then: .hangsUp), error("40001")])
  func failedReadIsRetried(
    _ action: ScriptedAction
  )
    async throws
  {
    let strikes = Mutex(0)
    let server = try FakePostgres { statement in
      statement.text.contains("note") && counted(strikes) == 1 ? action : ScriptedAction()
    }
    defer { server.end() }
    let database = try Self.database(server)
    #expect(try await database.read { one in try one.rows("SELECT text FROM note").count } == 1)
    #expect(strikes.withLock { $0 } == 2)
    try database.close()
  }

  /// Breaks off at random points, in every way.
  @Test func whateverItDoesTheAnswerIsRight() async throws {
    let jitter = SeededRandom(seed: 20_261_121)
    let random = { (count: Int) in Int(jitter.bytes(2).reduce(0) { $0 << 8 | UInt32($1) }) % count }
    let plan = Mutex((left: 0, action: ScriptedAction()))
    let server = try FakePostgres { statement in
      plan.withLock { plan in
        guard !statement.text.contains("set_config") else { return ScriptedAction() }
        plan.left -= 1
        return plan.left == 0 ? plan.action : ScriptedAction()
      }
    }
    defer { server.end() }
    let database = try Self.database(server)
    let codes = ["22012", "40001", "57P01", "53100", "XX000", "08006", "25006"]
    var outcomes: [Outcome] = []
    for round in 1...600 {
      let answers: [ScriptedAction.Answer] = [
        .none, .usual, .error(codes[random(codes.count)], severity: ["ERROR", "FATAL", "PANIC"][random(3)]),
        .bytes(Self.nonsense[random(Self.nonsense.count)]), .bytes(Self.half),
      ]
      let answer = answers[random(answers.count)]
      // A server that reports ERROR and commits anyway is outside the protocol; so is one whose first answers get lost
      // but not the later ones.
      let (mayCarryOut, mayLeaveOut, mayGoOn): (Bool, Bool, Bool) =
        switch answer {
        case .none, .bytes: (true, true, false)
        case .usual: (true, false, true)
        case .command: (false, false, false)
        case .error(_, let severity): (severity != "ERROR", true, severity == "ERROR")
        }
      let carriesOut = mayCarryOut && (!mayLeaveOut || random(2) == 0)
      let saysNothing = if case .none = answer { true } else { false }
      let action = ScriptedAction(
        carriesOut: carriesOut, answer: answer, then: mayGoOn && random(2) == 0 ? .goesOn : .hangsUp,
        flushes: !saysNothing || random(2) == 0)
      plan.withLock { $0 = (1 + random(5), action) }
      let before = server.committed.count
      let outcome = await Self.write(Int64(round), to: database, reads: random(2) == 0)
      plan.withLock { $0.left = 0 }
      let times = server.committed[before...].count { $0 == Int64(round) }
      switch outcome {
      case .done: #expect(times == 1, "round \(round): \(action)")
      case .unknown: #expect(times <= 1, "round \(round): \(action)")
      case .fault: #expect(times == 0, "round \(round): \(action)")
      }
      outcomes.append(outcome)
    }
    #expect(outcomes.count { $0 == .done } > 200 && outcomes.count { $0 == .unknown } > 50)
    try database.close()
  }

  // MARK: what is done

  private static func database(_ server: FakePostgres) throws -> PostgresDatabase {
    let timing = PostgresTiming(
      connect: .seconds(5), statement: .seconds(5), lock: .seconds(5), silence: .milliseconds(250), queue: .seconds(5))
    return PostgresDatabase(try PostgresAddress(server.url()), timing: timing, recordsMoments: false, jitter: { 0 })
  }

  private static func write(_ number: Int64, to database: PostgresDatabase, reads: Bool = true) async -> Outcome {
    do {
      try await database.write(at: ManualClock.start) { one in
        if reads { _ = try one.rows("SELECT text FROM note WHERE number = ?1", [.integer(-number)]) }
        try one.run("INSERT INTO note (number) VALUES (?1)", [.integer(number)])
      }
      return .done
    } catch {
      return "\(error)".contains("not known") ? .unknown : .fault("\(error)")
    }
  }
}
