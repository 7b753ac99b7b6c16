import Foundation
import MoongateCore
import MoongateStore
import Synchronization

/// A PostgreSQL server for this process. It is created in a scratch folder, and removed when the process ends in any
/// way.
///
/// Requires Debian's `postgresql` (`/usr/lib/postgresql/*/bin`). Skip suites that need it if it is not installed:
/// ```swift
/// @Suite(.enabled(if: PostgresServer.isInstalled, PostgresServer.need)) struct …
/// ```
package final class PostgresServer: Sendable {
  /// The reason shown for a skipped suite.
  package static let need = "PostgreSQL's server is not installed (Debian: postgresql)"
  /// Whether a server is installed.
  package static var isInstalled: Bool { binaries != nil }
  /// The server that suites share; nil if none can be started. Runs without fsync, so do not use it to test crash
  /// safety of the machine.
  package static let shared: PostgresServer? = try? PostgresServer()

  /// The role that stores sign in as, and its password.
  package static let (role, password) = ("moongate", "a secret")

  /// Why no server is running.
  package struct Problem: Error, CustomStringConvertible {
    package let description: String
  }

  /// A port on 127.0.0.1. The socket is in `folder`.
  package let port: Int
  /// The folder with all of the server's files.
  package let folder: String
  private let binaries: String
  private let process: Process
  private let commands: FileHandle
  private let answers: FileHandle
  private let numbers = Mutex(0)
  private let emptyStores = Mutex<[[UInt8]: String]>([:])
  private let turn = NSLock()

  /// Creates and starts a server.
  /// - Parameter settings: settings of postgresql.conf, such as `"max_connections=20"`.
  package init(settings: [String] = []) throws {
    guard let binaries = Self.binaries else { throw Problem(description: Self.need) }
    self.binaries = binaries
    folder = "/tmp/moongate-pg-\(UUID().uuidString.prefix(8))"
    port = try Self.freePort()
    process = Process()
    let (input, output) = (Pipe(), Pipe())
    let server =
      ["/bin/sh", "-c", Self.keeper, "keeper", folder, binaries, String(port)]
      + (Self.settings + settings).flatMap { ["-c", $0] }
    // PostgreSQL refuses to run as root.
    let command =
      getuid() == 0 ? ["/usr/bin/setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] + server : server
    process.executableURL = URL(fileURLWithPath: command[0])
    process.arguments = Array(command.dropFirst())
    process.environment = ["PATH": "/usr/bin:/bin", "LC_ALL": "C"]
    process.currentDirectoryURL = URL(fileURLWithPath: "/")
    process.standardInput = input
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    commands = input.fileHandleForWriting
    answers = output.fileHandleForReading
    try process.run()
    guard try readLine() == "ready" else { throw Problem(description: "the server did not start: see \(folder)/log") }
    try sql("CREATE ROLE \(Self.role) LOGIN PASSWORD '\(Self.password)'")
  }

  deinit { end() }

  /// Stops the server and removes its folder.
  package func end() { try? commands.close() }

  // MARK: Databases

  /// Creates an empty database that belongs to the role.
  /// - Returns: its name.
  package func makeDatabase() throws -> String { try makeDatabase(copying: "template1") }

  private func makeDatabase(copying template: String) throws -> String {
    let number = numbers.withLock { number in
      number += 1
      return number
    }
    let name = "store_\(number)"
    try sql("CREATE DATABASE \(name) OWNER \(Self.role) TEMPLATE \(template)")
    return name
  }

  /// The connection string of a database.
  package func url(
    _ database: String, user: String = PostgresServer.role, password: String? = PostgresServer.password,
    more: String = "pool=4"
  )
    -> String
  {
    let secret = password.map { ":" + $0.replacing(" ", with: "%20") } ?? ""
    return "postgres://\(user)\(secret)@127.0.0.1:\(port)/\(database)?\(more)"
  }

  /// Runs statements as the superuser, with psql.
  /// - Returns: one line per row, with columns separated by |.
  @discardableResult
  package func sql(_ statements: String, in database: String = "postgres") throws -> String {
    let psql = Process()
    psql.executableURL = URL(fileURLWithPath: binaries + "/psql")
    psql.arguments = [
      "-qAtX", "-v", "ON_ERROR_STOP=1", "-h", folder, "-p", String(port), "-U", "postgres", "-d", database, "-c",
      statements,
    ]
    psql.environment = ["PATH": "/usr/bin:/bin", "LC_ALL": "C"]
    let (output, errors) = (Pipe(), Pipe())
    psql.standardOutput = output
    psql.standardError = errors
    try psql.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    let words = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    psql.waitUntilExit()
    guard psql.terminationStatus == 0 else { throw Problem(description: words) }
    return text.trimmingCharacters(in: .newlines)
  }

  // MARK: Failures

  /// Kills the server and all its processes at once (SIGKILL), like a power failure.
  package func kill() throws { try tell("kill") }
  /// Starts the server after `kill`. It recovers from its log.
  package func start() throws { try tell("start") }
  /// Suspends all its processes: it keeps its connections but does not respond.
  package func suspend() throws { try tell("suspend") }
  /// Resumes its processes.
  package func resume() throws { try tell("resume") }

  private func tell(_ command: String) throws {
    turn.lock()
    defer { turn.unlock() }
    try commands.write(contentsOf: Data("\(command)\n".utf8))
    guard try readLine() == "ready" else { throw Problem(description: "the server did not \(command)") }
  }

  private func readLine() throws -> String {
    var line: [UInt8] = []
    while let byte = try answers.read(upToCount: 1)?.first, byte != UInt8(ascii: "\n") { line.append(byte) }
    return String(decoding: line, as: UTF8.self)
  }

  private static let binaries: String? = {
    let root = "/usr/lib/postgresql"
    let versions = ((try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []).compactMap { Int($0) }.sorted()
    return versions.reversed().map { "\(root)/\($0)/bin" }.first {
      FileManager.default.isExecutableFile(atPath: $0 + "/initdb")
    }
  }()

  private static let settings = [
    "listen_addresses=127.0.0.1", "max_connections=300", "shared_buffers=64MB", "fsync=off", "full_page_writes=off",
    "autovacuum=off",
    "logging_collector=off", "lc_messages=C", "timezone=UTC",
  ]

  /// Returns a free port below the range that the system uses for outgoing connections.
  private static func freePort() throws -> Int {
    for _ in 0..<200 {
      let port = Int.random(in: 22000..<23000)
      let probe = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      defer { close(probe) }
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = UInt16(port).bigEndian
      address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
      let size = socklen_t(MemoryLayout<sockaddr_in>.size)
      let bound = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(probe, $0, size) }
      }
      if bound == 0 { return port }
    }
    throw Problem(description: "there is no free port")
  }

  /// The script that supervises the server. It executes commands from standard input, and stops the server when
  /// standard input closes because this process has ended.
  private static let keeper = """
    folder=$1 bin=$2 port=$3; shift 3
    mkdir -m 0700 "$folder" || exit 1
    trap '' INT TERM HUP
    "$bin/initdb" -D "$folder/data" -U postgres -E UTF8 --no-locale --auth-local=trust --auth-host=scram-sha-256 --no-sync >"$folder/log" 2>&1 || exit 1
    launch() {
      tries=0
      while :; do
        "$bin/postgres" -D "$folder/data" -k "$folder" -p "$port" "$@" >>"$folder/log" 2>&1 </dev/null &
        server=$!
        while kill -0 $server 2>/dev/null; do
          "$bin/pg_isready" -q -h "$folder" -p "$port" && return 0
          sleep 0.02
        done
        wait $server
        tries=$((tries + 1)); [ $tries -lt 100 ] || return 1
        sleep 0.05
      done
    }
    all() { echo $server $(ps -o pid= --ppid $server); }
    launch "$@" && echo ready
    while read -r command; do
      case $command in
        kill) kill -KILL $(all); wait $server ;;
        start) launch "$@" ;;
        suspend) kill -STOP $(all) ;;
        resume) kill -CONT $(all) ;;
      esac
      echo ready
    done
    kill -CONT $(all) 2>/dev/null
    kill -QUIT $server 2>/dev/null
    wait $server
    rm -rf "$folder"
    """
}

extension PostgresServer {
  /// Creates a database with an empty store, which is faster than letting a store create its tables.
  /// - Parameter key: the fingerprint of the store's key.
  /// - Returns: its name.
  package func makeStoreDatabase(key: [UInt8] = [1]) throws -> String {
    let template = try emptyStores.withLock { templates in
      if let template = templates[key] { return template }
      let new = try makeDatabase()
      try PostgresStore(url: url(new), keyFingerprint: key, purpose: .working).close()
      templates[key] = new
      return new
    }
    return try makeDatabase(copying: template)
  }

  /// An empty store in a new database.
  package func makeStore(key: [UInt8] = [UInt8](repeating: 7, count: 16)) throws -> PostgresStore {
    try PostgresStore(url: url(try makeStoreDatabase(key: key)), keyFingerprint: key, purpose: .working)
  }
}
