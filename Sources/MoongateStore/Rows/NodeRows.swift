import MoongateCore

/// The gateways that serve from this store.
enum NodeRows {
  static func put(_ node: ServingNode, _ rows: some SQLTransaction) throws {
    try rows.run(
      """
      INSERT INTO node (id, generation, seen_at) VALUES (?1, ?2, ?3)
      ON CONFLICT (id) DO UPDATE SET generation = excluded.generation, seen_at = excluded.seen_at
      """, [.text(node.id), .text(node.generation), SQLValue(node.seenAt)])
    try rows.run("DELETE FROM node WHERE seen_at <= ?1", [SQLValue(node.seenAt - ServingNode.memory)])
  }

  static func all(at now: Timestamp, _ rows: some SQLTransaction) throws -> [ServingNode] {
    try rows.rows("SELECT id, generation, seen_at FROM node WHERE seen_at > ?1 ORDER BY id", [SQLValue(now - ServingNode.patience)]).map {
      ServingNode(id: try $0.text(0), generation: try $0.text(1), seenAt: try $0.moment(2))
    }
  }

  static func remove(_ id: String, _ rows: some SQLTransaction) throws { try rows.run("DELETE FROM node WHERE id = ?1", [.text(id)]) }
}
