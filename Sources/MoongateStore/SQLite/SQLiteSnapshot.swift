import Foundation
import GRDB
import MoongateCore

/// A SQLite file for an operator's commands. A gateway may be using it at the same time.
struct SQLiteSnapshot: StoreSnapshot {
  let path: String
  var schema = Schema.current

  var name: String { "sqlite:\(path)" }
  private var file: DatabaseFile { DatabaseFile(path: path, schema: schema) }

  func version() throws(StoreRefusal) -> Int? {
    guard FileManager.default.fileExists(atPath: path) else { return nil }
    return try file.inspect()
  }

  func migrate() throws(StoreRefusal) -> Int {
    try file.create()
    _ = try file.inspect()
    try file.tighten()
    do {
      let database = try DatabaseQueue(path: path, configuration: SQLiteConfiguration.writing)
      defer { try? database.close() }
      return try database.writeWithoutTransaction { db in try schema.migrate(db, path: path) }
    } catch {
      throw file.refusal(error)
    }
  }

  func damage() throws -> [String] {
    try opened(SQLiteConfiguration.reading) { db in
      let pages = try String.fetchAll(db, sql: "PRAGMA integrity_check").filter { $0 != "ok" }
      let references = try Row.fetchAll(db, sql: "PRAGMA foreign_key_check").map {
        "a row of \($0[0] as String) belongs to nothing"
      }
      return pages + references
    }
  }

  func read<Work: SnapshotWork>(_ work: Work) throws -> Work.Value {
    try opened(SQLiteConfiguration.reading) { db in
      let rows = SQLiteTransaction(db)
      try rows.run("BEGIN")
      defer { do { try rows.run("COMMIT") } catch { try? rows.run("ROLLBACK") } }
      return try work.run(rows)
    }
  }

  func write<Work: SnapshotWork>(_ work: Work) throws -> Work.Value {
    try opened(SQLiteConfiguration.writing) { db in
      let rows = SQLiteTransaction(db)
      try rows.run("BEGIN IMMEDIATE")
      do {
        let value = try work.run(rows)
        try rows.run("COMMIT")
        return value
      } catch {
        if db.isInsideTransaction { try? rows.run("ROLLBACK") }
        throw error
      }
    }
  }

  private func opened<Value>(_ configuration: Configuration, _ body: (Database) throws -> Value) throws -> Value {
    do {
      let database = try DatabaseQueue(path: path, configuration: configuration)
      defer { try? database.close() }
      return try database.writeWithoutTransaction(body)
    } catch let error as DatabaseError {
      throw file.refusal(error)
    }
  }
}
