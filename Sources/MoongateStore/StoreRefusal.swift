/// A store that the program does not open: what is wrong and what to do, in one sentence or two for the operator.
package enum StoreRefusal: Error, Sendable, Equatable, CustomStringConvertible {
  /// Written by a program that is newer than this one.
  case newerSchema(path: String, found: Int, known: Int)
  /// A database, but of another program.
  case foreign(path: String)
  /// No database at all, or a damaged one.
  case unreadable(path: String)
  /// File or folder cannot be made or written.
  case unwritable(path: String, reason: String)
  /// Made with another master key: its codes, counters and records would mean nothing under this one.
  case otherKey(path: String)
  /// Anything else that the database says.
  case fault(path: String, reason: String)

  package var description: String {
    switch self {
    case .newerSchema(let path, let found, let known):
      """
      The store \(path) was written by a newer Moongate (its schema is \(found), this program knows \(known)). \
      Start the newer program, or name another store in gateway.lua.
      """
    case .foreign(let path):
      "\(path) is the database of another program. Name a file of Moongate's own as `store` in gateway.lua; it is made at the first start."
    case .unreadable(let path):
      "\(path) is no SQLite database, or it is damaged. Restore it from a backup, or name another file as `store` in gateway.lua."
    case .unwritable(let path, let reason):
      "The store \(path) cannot be written (\(reason)). Let Moongate's user write the file and its folder, or name another file as `store` in gateway.lua."
    case .otherKey(let path):
      "The store \(path) was made with another master key. Name that key as `key` in gateway.lua, or name another store."
    case .fault(let path, let reason):
      "The store \(path) cannot be opened (\(reason)). Look at its disk, then start again."
    }
  }
}
