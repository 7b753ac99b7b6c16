import Foundation
import Synchronization

/// A test server that implements just enough of PostgreSQL's protocol (PostgreSQL documentation, "Frontend/Backend
/// Protocol", version 3) and treats statements as the test defines: hangs up, answers nonsense, stays silent.
///
/// It recognises statements by their first words only. INSERT adds its first argument, a number.
final class FakePostgres: Sendable {
  struct Statement: Sendable {
    enum Kind: Sendable { case begin, commit, rollback, read, write, other }

    /// The number of its connection, counted from 1.
    let connection: Int
    let text: String
    let arguments: [[UInt8]?]

    var kind: Kind {
      switch word {
      case "BEGIN", "START": .begin
      case "COMMIT", "END": .commit
      case "ROLLBACK", "ABORT": .rollback
      case "SELECT", "WITH": .read
      case "INSERT", "UPDATE", "DELETE": .write
      default: .other
      }
    }

    var number: Int64? {
      guard let first = arguments.first, let bytes = first, bytes.count == 8 else { return nil }
      return bytes.reduce(0) { $0 << 8 | Int64($1) }
    }

    fileprivate var word: String { text.split { !$0.isLetter }.first?.uppercased() ?? "" }

    fileprivate var tag: String {
      switch kind {
      case .read: "SELECT 1"
      case .write: "INSERT 0 1"
      default: word
      }
    }
  }

  /// What the server does with a statement.
  struct ScriptedAction: Sendable {
    enum Answer: Sendable {
      case usual
      case command(String)
      case error(String, severity: String = "ERROR")
      case bytes([UInt8])
      case none
    }

    enum Then: Sendable {
      case goesOn
      case hangsUp
      case isSilent
      /// Executes everything but sends no answers; hangs up after the next COMMIT.
      case isMute
    }

    var carriesOut = true
    var answer = Answer.usual
    var then = Then.goesOn
    /// Whether the answers to earlier statements reach the client.
    var flushes = true
  }

  private struct Book {
    var connections = 0
    var committed: [Int64] = []
  }

  let port: Int
  private let listener: Int32
  private let action: @Sendable (Statement) -> ScriptedAction
  private let book = Mutex(Book())

  /// The numbers that were committed, repeated if committed more than once.
  var committed: [Int64] { book.withLock { $0.committed } }
  var connections: Int { book.withLock { $0.connections } }

  /// - Parameter greeting: sent to every client, followed by hanging up; nil to serve.
  init(
    greeting: [UInt8]? = nil, _ action: @escaping @Sendable (Statement) -> ScriptedAction = { _ in ScriptedAction() }
  )
    throws
  {
    self.action = action
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let descriptor = listener
    let isBound = withUnsafeMutablePointer(to: &address) { place in
      place.withMemoryRebound(to: sockaddr.self, capacity: 1) { place in
        bind(descriptor, place, size) == 0 && listen(descriptor, 64) == 0 && getsockname(descriptor, place, &size) == 0
      }
    }
    guard isBound else { throw CocoaError(.fileWriteUnknown) }
    port = Int(UInt16(bigEndian: address.sin_port))
    Thread.detachNewThread { [self] in
      while case let socket = accept(listener, nil, nil), socket >= 0 {
        let number = book.withLock { book in
          book.connections += 1
          return book.connections
        }
        Thread.detachNewThread { [self] in
          var talk = FakeTalk(socket: socket, connection: number, action: action) { numbers in
            self.book.withLock { $0.committed += numbers }
          }
          if let greeting { talk.greet(greeting) } else { talk.go() }
          close(socket)
        }
      }
      close(listener)
    }
  }

  func url(_ more: String = "pool=1") -> String { "postgres://a@127.0.0.1:\(port)/x?sslmode=disable&\(more)" }

  /// Accepts no further connections.
  func end() { shutdown(listener, Int32(SHUT_RDWR)) }
}

/// The state of one connection.
private struct FakeTalk {
  let socket: Int32
  let connection: Int
  let action: @Sendable (FakePostgres.Statement) -> FakePostgres.ScriptedAction
  let commit: ([Int64]) -> Void

  private var out: [UInt8] = []
  private var statements: [String: String] = [:]
  private var portal: FakePostgres.Statement?
  /// The status in ReadyForQuery: idle, in a transaction, or in a failed one.
  private var status = UInt8(ascii: "I")
  private var written: [Int64] = []
  private var skips = false
  private var isMute = false
  private var hasCommittedMute = false

  init(
    socket: Int32, connection: Int, action: @escaping @Sendable (FakePostgres.Statement) -> FakePostgres.ScriptedAction,
    commit: @escaping ([Int64]) -> Void
  ) {
    self.socket = socket
    self.connection = connection
    self.action = action
    self.commit = commit
  }

  mutating func greet(_ bytes: [UInt8]) {
    _ = message()
    out = bytes
    flush()
  }

  mutating func go() {
    guard welcome() else { return }
    while let kind = read(1)?.first, let body = message() {
      switch kind {
      case UInt8(ascii: "S"):
        guard sync() else { return }
      case UInt8(ascii: "X"): return
      case _ where skips: continue
      case UInt8(ascii: "P"):
        var reader = FakeReader(bytes: body[...])
        statements[reader.text()] = reader.text()
        say("1")
      case UInt8(ascii: "B"):
        bind(body)
        say("2")
      case UInt8(ascii: "D"):
        if portal?.kind == .read { describe() } else { say("n") }
      case UInt8(ascii: "E"):
        guard execute() else { return }
      case UInt8(ascii: "Q"):
        say("C", Array("SELECT 0\0".utf8))
        guard sync() else { return }
      default: continue
      }
    }
  }

  private mutating func welcome() -> Bool {
    while let body = message() {
      // A request for TLS is declined.
      if body.starts(with: [4, 210, 22, 47]) {
        out = [UInt8(ascii: "N")]
        flush()
        continue
      }
      say("R", [0, 0, 0, 0])
      let told = [
        "server_version": "15.0", "server_encoding": "UTF8", "client_encoding": "UTF8",
        "standard_conforming_strings": "on",
        "default_transaction_read_only": "off", "in_hot_standby": "off",
      ]
      for (name, value) in told { say("S", Array("\(name)\0\(value)\0".utf8)) }
      say("K", [0, 0, 0, 1, 0, 0, 0, 2])
      say("Z", [status])
      flush()
      return true
    }
    return false
  }

  private mutating func bind(_ body: [UInt8]) {
    var reader = FakeReader(bytes: body[...])
    _ = reader.text()
    let name = reader.text()
    for _ in 0..<reader.number(2) { _ = reader.number(2) }
    let arguments = (0..<reader.number(2)).map { _ -> [UInt8]? in
      let length = reader.number(4)
      return length == 0xffff_ffff ? nil : reader.take(length)
    }
    portal = FakePostgres.Statement(connection: connection, text: statements[name] ?? "", arguments: arguments)
  }

  /// Describes one text column in binary format.
  private mutating func describe() {
    say(
      "T", [0, 1] + Array("text\0".utf8) + [0, 0, 0, 0, 0, 0, 0, 0, 0, 25, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 1])
  }

  /// - Returns: whether the connection continues.
  private mutating func execute() -> Bool {
    guard let statement = portal else { return false }
    let (isOver, isEnd) = (status == UInt8(ascii: "E"), [.commit, .rollback].contains(statement.kind))
    if isOver, !isEnd {
      refuse("25P02", "ERROR")
      return true
    }
    let action = action(statement)
    if !action.flushes { out = [] }
    if action.carriesOut { carryOut(statement) }
    switch action.answer {
    case .usual:
      if statement.kind == .read { say("D", [0, 1, 0, 0, 0, 6] + Array("public".utf8)) }
      say("C", Array((isOver ? "ROLLBACK" : statement.tag).utf8) + [0])
    case .command(let tag): say("C", Array(tag.utf8) + [0])
    case .error(let code, let severity): refuse(code, severity)
    case .bytes(let bytes): out += bytes
    case .none: break
    }
    switch action.then {
    case .goesOn: return true
    case .hangsUp:
      flush()
      return false
    case .isSilent:
      flush()
      while read(1) != nil {}
      return false
    case .isMute:
      flush()
      isMute = true
      return true
    }
  }

  private mutating func carryOut(_ statement: FakePostgres.Statement) {
    switch statement.kind {
    case .begin: status = UInt8(ascii: "T")
    case .commit:
      if status == UInt8(ascii: "T") { commit(written) }
      hasCommittedMute = isMute
      (written, status) = ([], UInt8(ascii: "I"))
    case .rollback: (written, status) = ([], UInt8(ascii: "I"))
    case .write: if let number = statement.number { written.append(number) }
    case .read, .other: break
    }
  }

  private mutating func refuse(_ code: String, _ severity: String) {
    say("E", Array("S\(severity)\0V\(severity)\0C\(code)\0Mno\0\0".utf8))
    skips = true
    written = []
    if status == UInt8(ascii: "T") { status = UInt8(ascii: "E") }
  }

  /// Handles Sync. What was written outside a transaction is committed here.
  private mutating func sync() -> Bool {
    if status == UInt8(ascii: "I") {
      commit(written)
      written = []
    }
    skips = false
    say("Z", [status])
    flush()
    return !hasCommittedMute
  }

  // MARK: bytes

  private mutating func say(_ kind: Character, _ body: [UInt8] = []) {
    out.append(kind.asciiValue ?? 0)
    withUnsafeBytes(of: UInt32(body.count + 4).bigEndian) { out.append(contentsOf: $0) }
    out += body
  }

  private mutating func flush() {
    defer { out = [] }
    guard !isMute else { return }
    var rest = out[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }

  private func message() -> [UInt8]? {
    guard let head = read(4) else { return nil }
    return read(head.reduce(0) { $0 << 8 | Int($1) } - 4)
  }

  private func read(_ count: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: max(0, count))
    var filled = 0
    while filled < bytes.count {
      let got = bytes.withUnsafeMutableBytes { recv(socket, $0.baseAddress.map { $0 + filled }, $0.count - filled, 0) }
      guard got > 0 else { return nil }
      filled += got
    }
    return bytes
  }
}

/// Reads the fields of a message.
private struct FakeReader {
  var bytes: ArraySlice<UInt8>

  mutating func text() -> String {
    let text = bytes.prefix { $0 != 0 }
    bytes = bytes.dropFirst(text.count + 1)
    return String(decoding: text, as: UTF8.self)
  }

  mutating func number(_ count: Int) -> Int { take(count).reduce(0) { $0 << 8 | Int($1) } }

  mutating func take(_ count: Int) -> [UInt8] {
    defer { bytes = bytes.dropFirst(count) }
    return Array(bytes.prefix(count))
  }
}
