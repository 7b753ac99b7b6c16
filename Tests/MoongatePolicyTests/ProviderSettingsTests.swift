import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// An operator's settings of a provider, checked against its declarations.
@Suite struct ProviderSettingsTests {
  private static let provider = ProviderDescriptor(
    name: "loft", beginFields: [], submitFields: [],
    settings: [
      SettingField(name: "birds", kind: .number(1...100), isRequired: true, help: "how many pigeons there are"),
      SettingField(
        name: "share", kind: .number(0.5...1), isRequired: false, help: "how many of them fly", standard: 0.75),
      SettingField(
        name: "at_night", kind: .flag, isRequired: false, help: "whether they fly at night", standard: false),
      SettingField(
        name: "breed", kind: .choice(["homing", "fantail"]), isRequired: false, help: "what they are",
        standard: "homing"),
      SettingField(
        name: "names", kind: .list, isRequired: false, help: "what they are called", standard: ["Ada", "Bo"]),
      SettingField(name: "map", kind: .file, isRequired: false, help: "where they fly"),
      SettingField(name: "log", kind: .source(flags: ["loud"]), isRequired: false, help: "where they are seen"),
      SettingField(
        name: "home", kind: .text, isRequired: false, help: "where they live",
        check: { text, site in text == site ? nil : "is not home: write \(site ?? "nothing")" }),
      SettingField(
        name: "rings", kind: .list, isRequired: false, help: "what they wear",
        check: { text, _ in text == text.lowercased() ? nil : "is not a ring: write \(text.lowercased())" }),
      SettingField(name: "keeper.name", kind: .text, isRequired: true, help: "who feeds them"),
      SettingField(name: "keeper.key", kind: .secret, isRequired: true, help: "what opens the door"),
      SettingField(name: "keeper.visits", kind: .number(1...9), isRequired: false, help: "how often", standard: 2),
    ], policy: PolicySource(file: "Plugins/Loft/policy.lua", text: "return policy \"loft\" { limits = {} }"),
    identifierKinds: [.email],
    facts: [
      FactField(name: "distance", kind: .number, help: "how far it is, in kilometres"),
      FactField(name: "is_island", kind: .flag, help: "whether there is water"),
      FactField(name: "loft", kind: .text, help: "which loft is near"),
    ])

  private func read(_ body: String, providers: [ProviderDescriptor] = [provider]) throws -> Result<
    any PolicyGeneration, RefusedConfiguration
  > {
    let folder = try TestFolder([
      "gateway.lua":
        "return gateway {\n  public_url = \"http://localhost:8080\",\n  providers = {\n    phone_otp = { sms = outbox() },\n    loft = {\n\(body)\n    },\n  },\n}",
      "maps/world.txt": "here", "policies/loft.lua": "return policy \"loft\" { limits = {} }",
      "policies/email_code.lua": nil,
    ])
    return folder.load(TestFolder.providers + providers)
  }

  @Test func everyKindIsReadAndDefaultsAreThere() throws {
    let generation = try read(
      #"birds = 3, at_night = true, breed = "fantail", names = { "Cy" }, map = "maps/world.txt""#
    ).get()
    let values = try #require(generation.gateway.providers["loft"]?.values)
    #expect(
      values["birds"] == 3 && values["share"] == 0.75 && values["at_night"] == true && values["breed"] == "fantail"
        && values["names"] == ["Cy"])
    guard case .text(let map)? = values["map"] else {
      Issue.record("no map")
      return
    }
    #expect(map.hasPrefix("/") && map.hasSuffix("/maps/world.txt"))
    let standing = try #require(try read("birds = 1").get().gateway.providers["loft"]?.values)
    #expect(
      try read("birds = 1, home = \"http://localhost:8080\"").get().gateway.providers["loft"]?.texts["home"]
        == "http://localhost:8080")
    #expect(
      standing == [
        "birds": 1, "share": 0.75, "at_night": false, "breed": "homing", "names": ["Ada", "Bo"], "keeper.visits": 2,
      ])
  }

  /// Settings in a table of their own. They are required only if the table is there.
  @Test func settingsInATable() throws {
    let body = #"birds = 1, keeper = { name = "Asha", key = file "maps/world.txt", visits = 3 }"#
    let settings = try #require(try read(body).get().gateway.providers["loft"])
    #expect(settings.texts["keeper.name"] == "Asha" && settings.values["keeper.visits"] == 3)
    #expect(settings.secrets["keeper.key"]?.reveal() == "here")
    let alone = try #require(try read("birds = 1").get().gateway.providers["loft"])
    #expect(alone.texts["keeper.name"] == nil && alone.values["keeper.visits"] == 2)
  }

  /// A site or a file, alone or in a table with flags.
  @Test func aSourceIsASiteOrAFile() throws {
    func values(_ log: String) throws -> [String: SettingValue] {
      let read = try read("birds = 1, log = \(log)").get().gateway.providers["loft"]?.values ?? [:]
      return read.filter { $0.key.hasPrefix("log") }
    }
    #expect(try values(#""https://birds.example/api""#) == ["log": "https://birds.example/api"])
    #expect(
      try values(#"{ "http://localhost:9000", loud = true }"#) == ["log": "http://localhost:9000", "log.loud": true])
    #expect(try values(#"{ "https://birds.example" }"#) == ["log": "https://birds.example"])
    guard case .text(let file)? = try values(#"{ "maps/world.txt", loud = false }"#)["log"] else {
      Issue.record("no file")
      return
    }
    #expect(file.hasPrefix("/") && file.hasSuffix("/maps/world.txt"))
  }

  @Test(arguments: [
    ("", "gateway.lua:5: providers.loft.birds: is missing: how many pigeons there are"),
    ("birds = 0", "gateway.lua:6: providers.loft.birds: must be a number from 1 to 100, not the number 0"),
    ("birds = \"3\"", "gateway.lua:6: providers.loft.birds: must be a number from 1 to 100, not \"3\""),
    ("birds = 0/0", "gateway.lua:6: providers.loft.birds: must be a number from 1 to 100, not "),
    ("birds = 1,\nshare = 2", "gateway.lua:7: providers.loft.share: must be a number from 0.5 to 1, not the number 2"),
    ("birds = 1, at_night = \"yes\"", "gateway.lua:6: providers.loft.at_night: must be true or false, not \"yes\""),
    (
      "birds = 1, breed = \"homin\"",
      "gateway.lua:6: providers.loft.breed: \"homin\" is not known; did you mean `homing`?"
    ),
    (
      "birds = 1, names = \"Cy\"",
      "gateway.lua:6: providers.loft.names: must be a list of texts, as in `{ \"a\", \"b\" }`, not \"Cy\""
    ),
    ("birds = 1, names = { 5 }", "gateway.lua:6: providers.loft.names[1]: must be a text in quotes, not the number 5"),
    (
      "birds = 1, map = \"maps/moon.txt\"",
      "gateway.lua:6: providers.loft.map: there is no file maps/moon.txt (paths are relative to the configuration folder)"
    ),
    ("birds = 1, keeper = \"Asha\"", "gateway.lua:6: providers.loft.keeper: must be a table, as in"),
    (
      "birds = 1, keeper = { key = file \"maps/world.txt\" }",
      "gateway.lua:6: providers.loft.keeper.name: is missing: who feeds them"
    ),
    (
      "birds = 1, keeper = { name = \"Asha\", key = file \"maps/world.txt\", visits = 10 }",
      "gateway.lua:6: providers.loft.keeper.visits: must be a number from 1 to 9, not the number 10"
    ),
    (
      "birds = 1, keeper = { name = \"Asha\", kye = file \"maps/world.txt\" }",
      "gateway.lua:6: providers.loft.keeper.kye: unknown field; did you mean `key`?"
    ),
    (
      "birds = 1, map = \"maps\"",
      "gateway.lua:6: providers.loft.map: there is no file maps (paths are relative to the configuration folder)"
    ),
    (
      "birds = 1,\nhome = \"http://localhost\"",
      "gateway.lua:7: providers.loft.home: \"http://localhost\" is not home: write http://localhost:8080"
    ),
    (
      "birds = 1,\nrings = { \"a\",\n\"B\" }",
      "gateway.lua:8: providers.loft.rings[2]: \"B\" is not a ring: write b"
    ),
    (
      "birds = 1, log = \"http://birds.example\"",
      "gateway.lua:6: providers.loft.log: \"http://birds.example\" is not the address of a site: write https://"
    ),
    (
      "birds = 1, log = \"https://birds.example/?q=\"",
      "gateway.lua:6: providers.loft.log: \"https://birds.example/?q=\" is not the address of a site"
    ),
    ("birds = 1, log = \"birds.example\"", "gateway.lua:6: providers.loft.log: there is no file birds.example"),
    ("birds = 1, log = true", "gateway.lua:6: providers.loft.log: must be a text in quotes, not "),
    ("birds = 1, log = {}", "gateway.lua:6: providers.loft.log: must begin with one address or file, as in "),
    (
      "birds = 1, log = { \"maps/world.txt\",\nlout = true }",
      "gateway.lua:7: providers.loft.log.lout: unknown field; did you mean `loud`?"
    ),
    (
      "birds = 1, log = { \"maps/world.txt\", loud = 1 }",
      "gateway.lua:6: providers.loft.log.loud: must be true or false"
    ),
    (
      "birds = 1, bird = 2",
      "gateway.lua:6: providers.loft.bird: unknown field; did you mean `birds`? (how many pigeons there are)"
    ),
  ]) func invalidSettingIsReportedWithItsLine(_ body: String, _ problem: String) throws {
    guard case .failure(let refused) = try read(body) else {
      Issue.record("loaded")
      return
    }
    #expect(refused.problems.count == 1 && refused.problems[0].description.hasPrefix(problem), "\(refused.problems)")
  }

  // MARK: facts

  @Test(arguments: [
    (
      "f.email.distance == 12 and f.email.is_island and f.email.loft == 'north'",
      ["distance": "12", "is_island": "true", "loft": "north"], true
    ),
    ("f.email.distance == 1.5", ["distance": "1.5"], true), ("f.email.distance == nil", ["distance": "far"], true),
    ("f.email.distance == nil", ["distance": "nan"], true), ("f.email.is_island == nil", ["is_island": "maybe"], true),
    ("f.email.is_island == false", ["is_island": "false"], true), ("f.email.loft == nil", [:], true),
    ("f.email.domain == 'x.example'", ["domain": "x.example"], true),
  ]) func policiesReadDeclaredFacts(_ condition: String, _ attributes: [String: String], _ expected: Bool) throws {
    let folder = try TestFolder([
      "gateway.lua":
        "return gateway { public_url = \"http://localhost:8080\", providers = { phone_otp = { sms = outbox() }, loft = { birds = 1 } } }",
      "policies/email_code.lua": nil,
      "policies/loft.lua":
        "return policy \"loft\" { limits = {}, verify = function(f) if \(condition) then return allow end return deny \"no\" end }",
    ])
    let generation = try folder.load(TestFolder.providers + [Self.provider]).get()
    let facts = Facts.test {
      $0.identifier = Identifier(kind: .email, value: "a@x.example", display: "", attributes: attributes)
    }
    let evaluator = try generation.makeEvaluator()
    #expect(
      evaluator.verdict(of: FunctionName("policies/loft.verify"), given: facts) == (expected ? .allow : .deny("no")))
    let evidence = try #require(evaluator.evidence(of: FunctionName("policies/loft.verify"), given: facts))
    #expect(evidence.facts.contains { $0.path.hasPrefix("email.") })
    // Nil for another kind of identifier.
    let phone = Facts.test {
      $0.identifier = Identifier(kind: .phone, value: "+1", display: "", attributes: attributes)
    }
    #expect(
      evaluator.verdict(of: FunctionName("policies/loft.verify"), given: phone)
        == (condition.hasSuffix("== nil") ? .allow : .deny("no")))
  }

  @Test func checkAndEditorsKnowThem() throws {
    let folder = try TestFolder([
      "policies/phone_otp.lua":
        "return policy \"phone_otp\" {\n  send = function(f) return f.email.distnace and deny \"far\" or allow end }"
    ])
    guard case .failure(let refused) = folder.load(TestFolder.providers + [Self.provider]) else {
      Issue.record("loaded")
      return
    }
    #expect(
      refused.problems.map(\.description) == [
        "policies/phone_otp.lua:2: unknown fact `f.email.distnace`; did you mean `distance`?"
      ])
    let text = EditorTypes(providers: [Self.provider]).text
    for line in [
      "---@field distance number? how far it is, in kilometres", "---@field is_island boolean? whether there is water",
      "---@field birds number how many pigeons there are",
      "---@field breed? \"homing\"|\"fantail\" what they are (default: \"homing\")",
      "---@field at_night? boolean whether they fly at night (default: false)",
      "---@field names? string[] what they are called",
      "---@field map? string where they fly", "---@field share? number how many of them fly (default: 0.75)",
    ] {
      #expect(text.contains(line + "\n"), "\(line)")
    }
    #expect(!text.contains("---@field type string?"), "no provider declares it")
  }

  @Test(arguments: [
    (
      FactField(name: "address", kind: .text, help: ""),
      "`other` declares the fact `f.email.address`, which the gateway defines itself"
    ),
    (
      FactField(name: "distance", kind: .text, help: ""),
      "`other` declares the fact `f.email.distance` as text, and `loft` as number"
    ),
  ]) func factsThatCannotBe(_ fact: FactField, _ message: String) throws {
    let other = ProviderDescriptor(
      name: "other", beginFields: [], submitFields: [], settings: [],
      policy: PolicySource(file: "Plugins/Other/policy.lua", text: "return policy \"other\" { limits = {} }"),
      identifierKinds: [.email],
      facts: [fact])
    guard case .failure(let refused) = try read("birds = 1", providers: [Self.provider, other]) else {
      Issue.record("loaded")
      return
    }
    #expect(refused.problems.map(\.description) == ["gateway.lua: providers.other: \(message)"])
  }
}
