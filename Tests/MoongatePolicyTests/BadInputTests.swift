import Foundation
import MoongateCore
import MoongatePolicy
import MoongateSDK
import MoongateTesting
import Testing

/// Invalid folders: each problem is one clear line, and the loader never crashes or hangs.
@Suite struct BadInputTests {
  /// After a policy is removed, a warning names the defaults that apply.
  @Test func missingPolicyIsReported() throws {
    let sentence = "so the provider's defaults apply; to confirm this, create it with return policy \"phone_otp\" {}"
    #expect(
      try TestFolder(["policies/phone_otp.lua": nil]).generation().warnings.map(\.description) == [
        "policies/phone_otp.lua: does not exist, \(sentence)"
      ])
  }

  @Test func noFolder() {
    guard
      case .failure(let refused) = ConfigurationLoader(providers: [], environment: [:]).load(folder: "/nowhere/at/all")
    else {
      Issue.record("loaded")
      return
    }
    #expect(refused.isFolderMissing && refused.id == nil)
    #expect(refused.problems.map(\.description) == ["/nowhere/at/all: the folder does not exist"])
  }

  @Test func aFileForAFolder() throws {
    let folder = try TestFolder()
    guard
      case .failure(let refused) = ConfigurationLoader(providers: [], environment: [:]).load(
        folder: folder.scratch.path("gateway.lua"))
    else {
      Issue.record("loaded")
      return
    }
    #expect(refused.isFolderMissing)
  }

  /// A folder that cannot be read must not count as empty. Root may read every folder.
  @Test(.enabled(if: geteuid() != 0, "root may read every folder")) func unreadableFolders() throws {
    let reason = "permission denied: the gateway's user must be able to read the folder, and enter those above it"
    let folder = try TestFolder()
    try folder.scratch.setMode(0o300, of: "policies")
    #expect(folder.problems().contains("policies: \(reason)"))
    try folder.scratch.setMode(0o700, of: "policies")
    try folder.scratch.setMode(0o300, of: ".")
    #expect(folder.problems() == ["\(folder.scratch.path): \(reason)"])
    try folder.scratch.setMode(0o700, of: ".")
  }

  @Test func noGateway() throws {
    #expect(
      try TestFolder(["gateway.lua": nil]).problems() == ["gateway.lua: is missing: every configuration folder has one"]
    )
  }

  @Test func noRoutesIsAWarning() throws {
    #expect(
      try TestFolder(["routes.lua": nil]).generation().warnings.map(\.description) == [
        "routes.lua: is missing: the gateway answers all other requests with 404"
      ])
  }

  @Test func noLoginFlow() throws {
    #expect(
      try TestFolder(["flows/login.lua": nil]).problems() == [
        "routes.lua:3: sends users without a session to the flow `login`, but flows/login.lua does not exist"
      ])
  }

  @Test func notUTF8() throws {
    let folder = try TestFolder()
    try Data("return routes {\n-- caf\u{e9}\n}".unicodeScalars.map { UInt8($0.value) }).write(
      to: URL(fileURLWithPath: folder.scratch.path("routes.lua")))
    #expect(folder.problems() == ["routes.lua:2: the file is not UTF-8: save it as UTF-8 in your editor"])
  }

  @Test func byteOrderMarkIsIgnored() throws {
    #expect(try TestFolder(["routes.lua": "\u{feff}" + TestFolder.routes]).problems() == [])
  }

  @Test func tenMegabytes() throws {
    #expect(
      try TestFolder(["routes.lua": String(repeating: " ", count: 10 << 20)]).problems() == [
        "routes.lua: it is larger than 1 MiB"
      ])
  }

  @Test func aMegabyteThatParsesSlowly() throws {
    let labels = (0..<60_000).map { "::l\($0)::" }.joined(separator: " ")
    let folder = try TestFolder(["routes.lua": labels])
    let time = ContinuousClock().measure {
      #expect(folder.problems() == ["routes.lua: more than 1000 labels (`::name::`)"])
    }
    #expect(time < .seconds(5))
  }

  @Test func linksThatLeadNowhere() throws {
    let folder = try TestFolder()
    try FileManager.default.createDirectory(atPath: folder.scratch.path("policies"), withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: folder.scratch.path("policies/a.lua"), withDestinationPath: "b.lua")
    try FileManager.default.createSymbolicLink(
      atPath: folder.scratch.path("policies/b.lua"), withDestinationPath: "a.lua")
    try FileManager.default.createSymbolicLink(atPath: folder.scratch.path("tests"), withDestinationPath: "tests")
    #expect(
      folder.problems() == [
        "policies/a.lua: a dangling or circular symbolic link",
        "policies/b.lua: a dangling or circular symbolic link",
        "tests: a dangling or circular symbolic link",
      ])
  }

  @Test func validLinksAreFollowed() throws {
    let folder = try TestFolder(["flows/login.lua": nil])
    try folder.scratch.write(TestFolder.flow, to: "elsewhere/login.lua")
    try FileManager.default.createSymbolicLink(atPath: folder.scratch.path("flows"), withDestinationPath: "elsewhere")
    #expect(folder.problems() == [])
  }

  @Test func folderLinkedToItsParent() throws {
    let folder = try TestFolder(["policies/phone_otp.lua": nil, "policies/email_code.lua": nil])
    try FileManager.default.createSymbolicLink(atPath: folder.scratch.path("policies"), withDestinationPath: ".")
    #expect(folder.problems().allSatisfy { $0.contains("unknown provider") })
  }

  @Test func pipesAndFoldersNamedLikeFilesAreReported() throws {
    let folder = try TestFolder(["routes.lua": nil])
    #expect(mkfifo(folder.scratch.path("routes.lua"), 0o600) == 0)
    try FileManager.default.createDirectory(
      atPath: folder.scratch.path("flows/x.lua"), withIntermediateDirectories: true)
    #expect(folder.problems() == ["flows/x.lua: it is not a regular file", "routes.lua: it is not a regular file"])
  }

  /// A file that can be opened but not read is not an empty one.
  @Test func aFileThatCannotBeRead() throws {
    let folder = try TestFolder()
    try FileManager.default.createSymbolicLink(
      atPath: folder.scratch.path("flows/x.lua"), withDestinationPath: "/proc/self/mem")
    #expect(folder.problems() == ["flows/x.lua: it cannot be read: Input/output error"])
  }

  /// Files that are created and removed while they are read.
  @Test func filesThatVanish() async throws {
    let folder = try TestFolder()
    let path = folder.scratch.path("flows/other.lua")
    let text = TestFolder.flow.replacing("\"login\"", with: "\"other\"")
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        for _ in 0..<300 {
          try? Data(text.utf8).write(to: URL(fileURLWithPath: path))
          try? FileManager.default.removeItem(atPath: path)
        }
      }
      group.addTask {
        for _ in 0..<100 {
          for problem in folder.problems() { #expect(problem.hasPrefix("flows/other.lua"), "\(problem)") }
        }
      }
    }
    #expect(folder.problems() == [])
  }

  @Test func aThousandBadReloadsLeaveNoMemory() throws {
    let folder = try TestFolder([
      "policies/phone_otp.lua":
        "return policy \"phone_otp\" { limits = { verify = { windw = 1 } }, send = function(f) return alow end }"
    ])
    for _ in 0..<20 { _ = folder.problems() }
    let before = Self.residentBytes()
    for _ in 0..<300 { #expect(folder.problems().count == 5) }
    #expect(Self.residentBytes() - before < 24 << 20)
  }

  private static func residentBytes() -> Int {
    let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
    return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4096
  }
}
