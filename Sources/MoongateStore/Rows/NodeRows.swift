import MoongateCore

/// The gateways that serve from this store.
enum NodeRows {
  static func put(_ node: ServingNode, _ rows: some SQLTransaction) throws {
    try rows.run(
      """
      INSERT INTO node (id, generation, seen_at, keys) VALUES (?1, ?2, ?3, ?4)
      ON CONFLICT (id) DO UPDATE SET generation = excluded.generation, seen_at = excluded.seen_at, keys = excluded.keys
      """, [.text(node.id), .text(node.generation), SQLValue(node.seenAt), .text(node.keys.joined(separator: " "))])
    try rows.run("DELETE FROM node WHERE seen_at <= ?1", [SQLValue(node.seenAt - ServingNode.retention)])
  }

  static func all(at now: Timestamp, _ rows: some SQLTransaction) throws -> [ServingNode] {
    try rows.rows(
      "SELECT id, generation, seen_at, keys FROM node WHERE seen_at > ?1 ORDER BY id",
      [SQLValue(now - ServingNode.livenessTimeout)]
    ).map {
      ServingNode(
        id: try $0.text(0), generation: try $0.text(1), seenAt: try $0.moment(2),
        keys: try $0.text(3).split(separator: " ").map(String.init))
    }
  }

  static func remove(_ id: String, _ rows: some SQLTransaction) throws {
    try rows.run("DELETE FROM node WHERE id = ?1", [.text(id)])
  }
}
