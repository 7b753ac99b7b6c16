import Foundation
import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

/// 100,000 identifiers attacked at once: memory stays bounded, no lock is forgotten, no one else is locked out.
@Suite struct SiegeTests {
  @Test func aHundredThousandAtOnce() async throws {
    let folder = try ScratchFolder()
    let path = folder.path("moongate.db")
    let writer = Process()
    writer.executableURL = storeWriter
    writer.arguments = [path, "siege"]
    let pipe = Pipe()
    writer.standardOutput = pipe
    try writer.run()
    let output = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    writer.waitUntilExit()
    #expect(writer.terminationStatus == 0)
    let peak = try #require(Int(output.trimmingCharacters(in: .whitespacesAndNewlines)))
    #expect(peak < 80 * 1024, "the whole process had \(peak / 1024) MiB at most")

    let store = try SQLiteStore(path: path, keyFingerprint: [1])
    #expect(try await store.locks(at: Siege.now).count == Siege.size / 10)
    let random = SeededRandom()
    for number in stride(from: 0, through: Siege.size + 1, by: 997) + [Siege.size + 1] {
      let limit = Siege.limit(number)
      let request = ReservationRequest(id: ReservationID(from: random), now: Siege.now, limits: [limit], timer: nil)
      let locked = ReservationResult.refused(ReservationRefusal(reason: .locked(until: Siege.now + .seconds(900)), limit: limit))
      let place = number < Siege.size ? 2 : 1
      #expect(try await store.reserve(request) == (Siege.isLocked(number) ? locked : .reserved(places: [place], resendAt: nil)))
    }
  }
}

/// The program `store-writer`, beside the tests.
let storeWriter = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("store-writer")
