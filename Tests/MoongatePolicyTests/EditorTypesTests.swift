import CLua
import Foundation
import MoongateCore
import MoongateSDK
import Testing

@testable import MoongatePolicy

@Suite struct EditorTypesTests {
  private static let text = EditorTypes(providers: TestFolder.providers).text

  @Test func isLua() throws { try LuaState().parse(Array(Self.text.utf8), name: "moongate.d.lua") }

  /// Scripts and editors must have the same global names.
  @Test func globalsAreThoseOfTheSandbox() throws {
    let state = try LuaState()
    try state.load(
      Array("local names = {} for name in pairs(_ENV) do names[#names + 1] = name end return names".utf8), name: "x",
      marks: false)
    guard case .table(let table) = state.tree(file: "x", map: nil).value else {
      Issue.record("no table")
      return
    }
    let found = table.items.compactMap { if case .text(let name) = $0.value { name } else { nil } }
    #expect(Set(found).subtracting(LuaGlobals.names).sorted() == [])
    #expect(Set(LuaGlobals.names).subtracting(found).sorted() == [])
  }

  /// Every type that is used is declared.
  @Test func typesAreDeclared() {
    let declared = Set(
      Self.text.matches(of: /---@(?:class(?: \(exact\))?|alias) (moongate\.[A-Za-z_.]+)/).map { String($0.1) })
    let named = Set(
      Self.text.matches(of: /moongate\.[A-Z][A-Za-z_.]*/).map { String($0.0).trimmingCharacters(in: ["."]) })
    #expect(named.subtracting(declared).sorted() == [])
  }

  @Test func fieldsHaveTypesAndDescriptions() {
    #expect(
      Self.text.contains(
        "---@field window? moongate.Duration|moongate.Vary time window in which events are counted, such as \"15m\""
      ))
    #expect(
      Self.text.contains(
        "---@field listen? string address of the public listener, such as \"127.0.0.1:8080\" (default: \"127.0.0.1:8080\")"
      ))
    #expect(Self.text.contains("---@field phone_otp? moongate.Provider.phone_otp|moongate.Instance"))
    #expect(Self.text.contains("---@return moongate.Instance\nfunction phone_otp(settings) end"))
    #expect(Self.text.contains("---@field country string? the number's country in two letters"))
  }

  /// The reader accepts every default in the schema.
  @Test func defaultsAreGood() throws {
    let generation = try TestFolder().generation()
    #expect(
      generation.gateway.listen.description == "127.0.0.1:8080" && generation.gateway.region == "IN"
        && generation.gateway.service == "Moongate")
    #expect(generation.gateway.store == .sqlite(path: generation.gateway.key.folder + "/moongate.db"))
    let flow = try #require(generation.flows["login"])
    #expect(
      flow.lifetime == .seconds(900) && flow.session == SessionRule(lifetime: .seconds(43_200), idle: .seconds(3600)))
    #expect(flow.next == NextPaths(new: "/", returning: "/"))
    #expect(
      generation.routes.routes.allSatisfy { $0.timeout == .seconds(30) && $0.flow == "login" && !$0.allowsUpgrade })
  }
}

extension KeyLocation {
  /// The folder of the key file; empty for another kind.
  fileprivate var folder: String {
    if case .file(let path) = self { String(path.dropLast("/master.key".count)) } else { "" }
  }
}
