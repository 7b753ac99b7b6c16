@testable import MoongateStore

extension Schema {
  /// The schema with a made-up further step, as a later release would add one.
  static let next = Schema(
    steps: current.steps + [
      Step(
        sqlite: """
          CREATE TABLE made_up_table (name TEXT NOT NULL PRIMARY KEY) WITHOUT ROWID;
          ALTER TABLE account ADD COLUMN made_up TEXT;
          """,
        postgres: """
          CREATE TABLE made_up_table (name TEXT COLLATE "C" NOT NULL PRIMARY KEY);
          ALTER TABLE account ADD COLUMN made_up TEXT COLLATE "C";
          """)
    ])
}
