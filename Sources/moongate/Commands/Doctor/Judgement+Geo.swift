import MoongateCore
import MoongatePolicy

extension Judgement {
  /// Addresses move between countries and networks. A database that is renewed each month is never older than this.
  private static let oldestDatabase: Duration = .seconds(60 * 86_400)

  /// Judges the age of the databases of `geo`.
  static func geo(_ gateway: GatewaySettings, now: Timestamp) -> [Finding] {
    ((gateway.places as? GeoDatabases)?.all ?? []).map { geo($0.path, of: $0.contents, builtAt: $0.builtAt, now: now) }
  }

  static func geo(_ path: String, of contents: GeoDatabase.Contents, builtAt: Timestamp, now: Timestamp) -> Finding {
    let day = builtAt.text.prefix { $0 != "T" }
    guard now - builtAt > oldestDatabase else {
      return .ok("geo", "\(path) has the \(contents.rawValue) of addresses as of \(day).")
    }
    return .warning(
      "geo", "\(path) has the \(contents.rawValue) of addresses as of \(day), more than 60 days ago.",
      fix: "Renew the file, for example with geoipupdate each week. The gateway reads it again by itself.")
  }
}
