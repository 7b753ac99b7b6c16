import Foundation
import MoongateCore
import MoongatePolicy
import MoongateTesting
import Testing

@testable import MoongateGateway

/// A running gateway reads the databases of `geo` again when their files change.
@Suite struct GeoReloadTests {
  private let folder: ScratchFolder
  private let log = CapturedLog()
  private let made = Timestamp(milliseconds: 1_700_000_000_000)
  private var path: String { folder.path("c.mmdb") }
  private let client = ClientAddress(bytes: [10, 0, 0, 1]) ?? .unspecified

  init() throws { folder = try ScratchFolder() }

  private func write(_ country: String, at time: Timestamp) throws {
    let bytes = GeoFile(["10.0.0.0/8": ClientPlace(country: country)], builtAt: time).bytes
    try Data(bytes).write(to: URL(filePath: path), options: .atomic)
  }

  @Test func changedFileIsReadAndReportedOnce() throws {
    try write("DE", at: made)
    let databases = GeoDatabases(countries: try GeoDatabase(path, of: .countries), systems: nil)
    let generation = TestGeneration(gateway: .test(), flows: [], policies: [])
    let reload = GeoReload(generations: ActiveGeneration(generation, at: made), logger: log.logger)
    for _ in 1...3 { reload.look(at: databases) }
    #expect(log.lines.isEmpty)
    try write("FR", at: made + .seconds(86_400))
    for _ in 1...4 { reload.look(at: databases) }
    #expect(databases.place(of: client).country == "FR")
    #expect(log.lines.count == 1 && log.lines[0].contains("geo database reloaded"), "\(log.lines)")
    #expect(log.lines[0].contains("2023-11-15"))
  }

  @Test func fileThatCannotBeUsedIsReportedOnceAndIgnored() throws {
    try write("DE", at: made)
    let databases = GeoDatabases(countries: try GeoDatabase(path, of: .countries), systems: nil)
    let generation = TestGeneration(gateway: .test(), flows: [], policies: [])
    let reload = GeoReload(generations: ActiveGeneration(generation, at: made), logger: log.logger)
    try Data("rubbish".utf8).write(to: URL(filePath: path))
    for _ in 1...4 { reload.look(at: databases) }
    #expect(databases.place(of: client).country == "DE")
    #expect(log.lines.count == 1 && log.lines[0].contains("keeps the one that it has"), "\(log.lines)")
    try FileManager.default.removeItem(atPath: path)
    for _ in 1...4 { reload.look(at: databases) }
    #expect(log.lines.count == 2 && log.lines[1].contains("No such file"), "\(log.lines)")
    try write("FR", at: made)
    for _ in 1...4 { reload.look(at: databases) }
    #expect(databases.place(of: client).country == "FR")
  }
}
