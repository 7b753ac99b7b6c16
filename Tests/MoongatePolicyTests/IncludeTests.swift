import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// `include "name"`: the value of `shared/name.lua`.
@Suite struct IncludeTests {
  private static let night = """
    local zone = "UTC"
    return {
      hours = function(f) return hour(f.now, zone) < 6 end,
      broken = function(f) return f.account.age < 1 end,
      max = 2,
    }
    """

  private static func policy(_ body: String, _ before: String = "local night = include \"night\"") -> String {
    "\(before)\nreturn policy \"phone_otp\" {\n  send = function(f)\n    \(body)\n  end,\n}"
  }

  private static func folder(_ policy: String, _ shared: [String: String] = ["night": night]) throws -> TestFolder {
    var files: [String: String?] = ["policies/phone_otp.lua": policy]
    for (name, text) in shared { files["shared/\(name).lua"] = text }
    return try TestFolder(files)
  }

  private static let send = FunctionName("policies/phone_otp.send")

  private static func verdict(_ folder: TestFolder, at hour: Int64 = 0) throws -> Verdict {
    let evaluator = try folder.generation().makeEvaluator()
    return evaluator.verdict(
      of: send, given: Facts.test { $0.now = Timestamp(milliseconds: 1_767_225_600_000 + hour * 3_600_000) })
  }

  @Test func functionsAndValuesAreShared() throws {
    let folder = try Self.folder(
      Self.policy("if night.hours(f) and night.max == 2 then return deny \"night\" end return allow"))
    #expect(try Self.verdict(folder, at: 2) == .deny("night"))
    #expect(try Self.verdict(folder, at: 12) == .allow)
    let own = try Self.folder(
      "return policy \"phone_otp\" { send = include \"closed\" }",
      ["closed": "return function(f)\n  return deny \"closed\"\nend"])
    #expect(try Self.verdict(own) == .deny("closed"))
    let nested = try Self.folder(
      Self.policy("return night.hours(f) and deny \"night\" or allow", "local night = include(\"outer\").night"),
      ["night": Self.night, "outer": "return { night = include \"night\" }"])
    #expect(try Self.verdict(nested) == .deny("night"))
  }

  /// A fault, and the evidence of an answer, name the file that has the line.
  @Test func faultsNameTheSharedFile() throws {
    let called = try Self.folder(Self.policy("return night.broken(f) and allow or deny \"no\""))
    guard case .fault(let fault) = try Self.verdict(called) else {
      Issue.record("no fault")
      return
    }
    #expect(fault.location == SourceLocation(file: "shared/night.lua", line: 4), "\(fault)")
    let own = try Self.folder("local n = include \"night\"\nreturn policy \"phone_otp\" { send = n.broken }")
    guard case .fault(let second) = try Self.verdict(own) else {
      Issue.record("no fault")
      return
    }
    #expect(second.location == SourceLocation(file: "shared/night.lua", line: 4), "\(second)")
  }

  static let mistakes: [(shared: [String: String], before: String, problems: [String])] = [
    (
      ["night": "return {\n  hours = = 1,\n}"], "local night = include \"night\"",
      ["shared/night.lua:2: unexpected symbol near '='"]
    ),
    (
      ["night": "\nerror(\"no\")"], "local night = include \"night\"", ["shared/night.lua:2: no"]
    ),
    (
      ["night": "return 5"], "local night = include \"night\"",
      ["shared/night.lua:1: shared/night.lua must return a table or a function, not number"]
    ),
    (
      ["night": "return { hours = function(f) return huor(f.now, \"UTC\") end }"], "local night = include \"night\"",
      ["shared/night.lua:1: unknown name `huor`; did you mean `hour`?"]
    ),
    (
      ["night": night], "local night = include \"nigt\"",
      ["policies/phone_otp.lua:1: include finds no file of the name `nigt`; did you mean `night`?"]
    ),
    (
      ["Night": night], "local night = {}",
      [
        "shared/Night.lua:0: the name of a shared file has 1 to 32 lower-case letters, digits and _, and begins with a letter"
      ]
    ),
    (
      ["night": "return {}\n" + String(repeating: "--\n", count: 22_000)], "local night = {}",
      ["shared/night.lua:0: a shared file has at most 64 KiB; this one has 66010 bytes"]
    ),
    (
      ["night": "return { no = function(f) return deny \"Not Now\" end }"], "local night = include \"night\"",
      [
        "shared/night.lua:1: `Not Now` is not a valid reason: use at most 48 lower-case letters, digits and _, and none of the gateway's own codes; write `not_now`"
      ]
    ),
  ]

  /// A broken shared file is refused once, with its own file and line.
  @Test(arguments: mistakes)
  func mistakesAreReportedOnce(_ mistake: (shared: [String: String], before: String, problems: [String])) throws {
    let folder = try Self.folder(Self.policy("return allow", mistake.before), mistake.shared)
    let problems = folder.problems().map { $0.replacing(".lua: ", with: ".lua:0: ") }
    #expect(problems == mistake.problems)
  }

  /// Attack: shared files that include each other keep the loader busy.
  @Test func cyclesEnd() throws {
    let folder = try Self.folder(
      Self.policy("return allow", "local a = include \"a\""),
      ["a": "return { b = include \"b\" }", "b": "return { a = include \"a\" }"])
    let problems = folder.problems()
    #expect(problems.contains { $0.contains("includes itself") }, "\(problems)")
    #expect(problems.allSatisfy { $0.hasPrefix("shared/") }, "\(problems)")
    let unused = try Self.folder(
      Self.policy("return allow", ""), ["a": "return { b = include \"b\" }", "b": "return { a = include \"a\" }"])
    let told = unused.problems()
    #expect(told.contains { $0.contains("includes itself") }, "\(told)")
    let busy = try Self.folder(
      Self.policy("return allow", "local a = include \"a\""), ["a": "while true do end"])
    #expect(busy.problems().count == 1)
  }

  /// Attack: a path, another file of the folder, or a file that is read at a request.
  @Test(arguments: ["../gateway", "/etc/passwd", "policies/phone_otp", "night.lua", "./night", "night\\0x", ""])
  func nothingElseIsIncluded(_ name: String) throws {
    let folder = try Self.folder(Self.policy("return allow", "local x = include \"\(name)\""))
    let problems = folder.problems()
    #expect(problems.count == 1 && problems[0].contains("include finds no file of the name"), "\(problems)")
    let late = try Self.folder(Self.policy("return include(\"night\").max == 2 and allow or deny \"no\"", ""))
    guard case .fault(let fault) = try Self.verdict(late) else {
      Issue.record("it was included at a request")
      return
    }
    #expect(fault.message.contains("include works only while a file is loaded"), "\(fault)")
  }

  /// Attack: a value that one call leaves behind for the next one, by a shared file.
  @Test func sharedValuesKeepNothing() throws {
    let folder = try Self.folder(
      Self.policy("return count.next() == 1 and allow or deny \"kept\"", "local count = include \"count\""),
      ["count": "local n = 0\nreturn { next = function() n = n + 1 return n end }"])
    let evaluator = try folder.generation().makeEvaluator()
    for _ in 0..<3 { #expect(evaluator.verdict(of: Self.send, given: Facts.test()) == .allow) }
    let writes = try Self.folder(
      Self.policy("night.max = 3 return allow"))
    guard case .fault = try Self.verdict(writes) else {
      Issue.record("a shared table was changed")
      return
    }
  }

  /// A change of a shared file is another generation, and a change that the watcher and `policy diff` see.
  @Test(arguments: ["local night = include \"night\"", "local take = include\nlocal night = take(\"ni\" .. \"ght\")"])
  func changeOfASharedFileIsAChange(_ beginning: String) throws {
    let folder = try Self.folder(Self.policy("return night.hours(f) and deny \"night\" or allow", beginning))
    let before = try folder.generation()
    let signature = FolderSignature(folder: folder.scratch.path)
    try folder.scratch.write(Self.night.replacing("< 6", with: "< 17"), to: "shared/night.lua")
    #expect(FolderSignature(folder: folder.scratch.path) != signature)
    let after = try folder.generation()
    #expect(before.id != after.id)
    let changes = SettingsDiff(old: before, new: after, providers: try ProviderRegistry(ShippedProviders.all)).changes
    #expect(changes.map { "\($0.of).\($0.path)" } == ["policies/phone_otp.send"])
  }

  /// The proof knows what a shared file can answer.
  @Test func proofReadsSharedAnswers() throws {
    let files: [String: String?] = [
      "flows/login.lua": GuaranteeRefusalTests.flow(
        "login", "existing", "{ \"phone_otp\" }", "{ \"pin\", skippable = true }"),
      "policies/phone_otp.lua":
        "local s = include \"strict\"\nreturn policy \"phone_otp\" { verify = function(f) return s(f) end }",
      "shared/strict.lua":
        "return function(f) if hour(f.now, \"UTC\") < 6 then return require_also \"pin\" end return allow end",
      "guarantees.lua": GuaranteeRefusalTests.guarantee(
        "one factor", "account = { exists = true }, session = { passed = \"pin\" }"),
    ]
    let found = try GuaranteeFolder(files).refutations()
    #expect(found.count == 1, "\(found)")
  }
}
