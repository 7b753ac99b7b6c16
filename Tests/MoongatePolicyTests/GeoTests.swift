import Foundation
import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import PhoneOTP
import Testing

@testable import MoongatePolicy

/// `geo` of gateway.lua: the databases, the facts `f.client.country` and `f.client.asn`, and the limits by them.
@Suite struct GeoTests {
  private static let made = Timestamp(milliseconds: 1_700_000_000_000)
  private static let countries = GeoFile(
    [
      "10.0.0.0/8": ClientPlace(country: "DE"), "10.1.0.0/16": ClientPlace(country: "IN"),
      "2001:db8::/32": ClientPlace(country: "FR"), "192.0.2.0/24": ClientPlace(),
    ], builtAt: made, type: "Test-Country")
  private static let systems = GeoFile(
    ["10.1.0.0/16": ClientPlace(asn: 64_500), "203.0.113.7/32": ClientPlace(asn: 4_294_967_295)], builtAt: made)

  private let scratch: ScratchFolder

  init() throws { scratch = try ScratchFolder() }

  private func write(_ bytes: [UInt8], to name: String) throws -> String {
    try Data(bytes).write(to: URL(filePath: scratch.path(name)))
    return scratch.path(name)
  }

  private func address(_ text: String) throws -> ClientAddress {
    try #require(IPAddressText.parse(text.utf8))
  }

  // MARK: databases

  @Test(
    arguments: [
      ("10.2.3.4", "DE", nil), ("10.1.255.255", "IN", 64_500), ("11.0.0.1", nil, nil), ("2001:db8::1", "FR", nil),
      ("2001:db9::1", nil, nil), ("203.0.113.7", nil, 4_294_967_295), ("192.0.2.1", nil, nil), ("127.0.0.1", nil, nil),
      ("::ffff:10.2.3.4", "DE", nil),
    ] as [(String, String?, Int?)])
  func databasesTellWhereAnAddressIs(_ text: String, _ country: String?, _ asn: Int?) throws {
    let databases = GeoDatabases(
      countries: try GeoDatabase(write(Self.countries.bytes, to: "c.mmdb"), of: .countries),
      systems: try GeoDatabase(write(Self.systems.bytes, to: "a.mmdb"), of: .systems))
    #expect(databases.place(of: try address(text)) == ClientPlace(country: country, asn: asn))
    #expect(databases.all.allSatisfy { $0.builtAt == Self.made && $0.look() == .none })
  }

  @Test func fileThatCannotBeUsedIsRefused() throws {
    let cut = Array(Self.countries.bytes.dropLast(40))
    let files: [(path: String, contents: GeoDatabase.Contents, problem: String)] = [
      (scratch.path("none"), .countries, "No such file or directory"), (scratch.path("."), .countries, "not a file"),
      (try write([], to: "empty"), .countries, "not a database"),
      (try write(Array("hello".utf8), to: "text"), .countries, "not a database"),
      (try write(cut, to: "cut"), .countries, "not a database"),
      (try write(Self.systems.bytes, to: "a"), .countries, "it has no countries: its type is \"Test\""),
      (
        try write(Self.countries.bytes, to: "c"), .systems, "it has no autonomous systems: its type is \"Test-Country\""
      ),
      (
        try write(GeoFile([:], builtAt: Self.made, type: "a\u{1b}[31m\nb").bytes, to: "escape"), .countries,
        "its type is \"a[31mb\""
      ),
    ]
    for file in files {
      do throws(GeoDatabase.Problem) {
        _ = try GeoDatabase(file.path, of: file.contents)
        Issue.record("\(file.path) is accepted")
      } catch {
        #expect(error.message.contains(file.problem), "\(error.message)")
      }
    }
  }

  /// Attack, or accident: the file is cut or overwritten in place while it is used. Reading a mapped file beyond its
  /// end would end the process.
  @Test func fileThatIsCutInPlaceChangesNothing() throws {
    let path = try write(Self.countries.bytes, to: "c.mmdb")
    let database = try GeoDatabase(path, of: .countries)
    let handle = try FileHandle(forWritingTo: URL(filePath: path))
    try handle.truncate(atOffset: 10)
    try handle.close()
    #expect(database.country(of: try address("10.2.3.4")) == "DE")
    #expect(database.look() == .goesOn && database.look() == .isComplete)
    #expect(throws: GeoDatabase.Problem.self) { try database.reload() }
    let client = try address("10.2.3.4")
    #expect(database.country(of: client) == "DE" && database.look() == .none, "tried once")
  }

  @Test func changedFileIsReadOnceItIsComplete() throws {
    let path = try write(Self.countries.bytes, to: "c.mmdb")
    let database = try GeoDatabase(path, of: .countries)
    let other = GeoFile(["10.0.0.0/8": ClientPlace(country: "JP")], builtAt: Self.made + .seconds(60)).bytes
    _ = try write(Array(other.prefix(100)), to: "c.mmdb")
    #expect(database.look() == .goesOn)
    _ = try write(other, to: "c.mmdb")
    #expect(database.look() == .goesOn, "it has changed again")
    let client = try address("10.2.3.4")
    #expect(database.look() == .isComplete && database.country(of: client) == "DE")
    try database.reload()
    #expect(database.country(of: client) == "JP" && database.builtAt == Self.made + .seconds(60))
    #expect(database.look() == .none)
  }

  // MARK: configuration

  /// A folder with both databases and this table `geo`.
  private func folder(_ geo: String, _ files: [String: String?] = [:]) throws -> TestFolder {
    let gateway = """
      return gateway {
        public_url = "http://localhost:8080", region = "IN", \(geo)
        providers = { phone_otp = { sms = outbox() }, email_code = { mail = outbox() } },
      }
      """
    let folder = try TestFolder(["gateway.lua": gateway].merging(files) { $1 })
    for (name, file) in [("c.mmdb", Self.countries), ("a.mmdb", Self.systems)] {
      try file.write(to: folder.scratch.path(name))
    }
    return folder
  }

  @Test func databasesAreReadFromTheFolder() throws {
    let gateway = try folder("geo = { database = \"c.mmdb\", asn = \"a.mmdb\" },").generation().gateway
    #expect(gateway.place(of: try address("10.1.0.1")) == ClientPlace(country: "IN", asn: 64_500))
    #expect(gateway.geo?.countries?.hasSuffix("/c.mmdb") == true)
    let client = try address("10.1.0.1")
    let one = try folder("geo = { asn = \"a.mmdb\" },").generation().gateway
    #expect(one.place(of: client) == ClientPlace(asn: 64_500) && one.geo?.countries == nil)
    let none = try folder("").generation().gateway
    #expect(none.geo == nil && none.place(of: client) == ClientPlace())
  }

  @Test(arguments: [
    ("geo = {},", "gateway.lua:2: geo: names no database: set `database`, `asn` or both"),
    ("geo = \"c.mmdb\",", "gateway.lua:2: geo: must be a table"),
    ("geo = { database = 1 },", "gateway.lua:2: geo.database: must be a text in quotes"),
    ("geo = { databse = \"c.mmdb\" },", "did you mean `database`?"),
    ("geo = { database = \"none.mmdb\" },", "gateway.lua:2: geo.database: none.mmdb: No such file or directory"),
    ("geo = { database = \"a.mmdb\" },", "gateway.lua:2: geo.database: a.mmdb: it has no countries"),
    ("geo = { asn = \"gateway.lua\" },", "gateway.lua:2: geo.asn: gateway.lua: it is not a database"),
  ])
  func invalidGeoIsReported(_ geo: String, _ problem: String) throws {
    let problems = try folder(geo).problems()
    #expect(problems.contains { $0.contains(problem) }, "\(problems)")
  }

  private static let reading =
    "return policy \"phone_otp\" {\n send = function(f)\n if f.client.FACT == 1 then return deny \"no\" end\n return allow end }"
  private static let limited =
    "return policy \"phone_otp\" {\n limits = {\n wide = { on = \"send\", per = \"KEY\", max = 5, window = \"1h\" } } }"

  /// A rule that can never apply is a mistake.
  @Test func factsAndLimitsNeedTheirDatabase() throws {
    for (geo, fact, key, missing) in [
      ("geo = { asn = \"a.mmdb\" },", "country", "client_country", "geo.database"),
      ("geo = { database = \"c.mmdb\" },", "asn", "asn", "geo.asn"), ("", "country", "client_country", "geo.database"),
    ] {
      let reads = Self.reading.replacing("FACT", with: fact)
      #expect(
        try folder(geo, ["policies/phone_otp.lua": reads]).problems()
          == ["policies/phone_otp.lua:3: `f.client.\(fact)` is always nil: gateway.lua has no \(missing)"])
      let counts = Self.limited.replacing("KEY", with: key)
      let problems = try folder(geo, ["policies/phone_otp.lua": counts]).problems()
      #expect(
        problems.contains {
          $0.hasPrefix("policies/phone_otp.lua:3: limits.wide.per: gateway.lua has no \(missing), so this limit never")
        }, "\(problems)")
      let both = "geo = { database = \"c.mmdb\", asn = \"a.mmdb\" },"
      #expect(try folder(both, ["policies/phone_otp.lua": reads]).problems().isEmpty)
      #expect(try folder(both, ["policies/phone_otp.lua": counts]).problems().isEmpty)
    }
  }

  // MARK: functions and cases

  @Test(arguments: [
    ("f.client.country == \"IN\" and f.client.asn == 64500", ClientPlace(country: "IN", asn: 64_500)),
    ("f.client.country == nil and f.client.asn == nil", ClientPlace()),
    ("f.client.country ~= \"DE\" and math.type(f.client.asn) == \"integer\"", ClientPlace(asn: 1)),
  ])
  func factsReachTheFunction(_ condition: String, _ place: ClientPlace) throws {
    let policy =
      "return policy \"phone_otp\" { send = function(f) if \(condition) then return allow end return deny \"no\" end, reasons = { no = \"No.\" } }"
    let generation = try folder(
      "geo = { database = \"c.mmdb\", asn = \"a.mmdb\" },", ["policies/phone_otp.lua": policy]
    ).generation()
    let send = try #require(generation.policies["phone_otp"]?.send)
    let facts = Facts.test {
      $0.client.place = place
      $0.identifier = Identifier(kind: .phone, value: "+919999999999", display: "")
    }
    #expect(try generation.makeEvaluator().verdict(of: send, given: facts) == .allow)
  }

  /// The fuzzer calls functions with countries of the file, with others, and without one.
  @Test func functionThatFailsWithoutACountryIsFound() throws {
    let policy =
      "return policy \"phone_otp\" {\n send = function(f)\n if f.client.country:lower() == \"de\" then return deny \"no\" end\n return allow end, reasons = { no = \"No.\" } }"
    let generation = try folder(
      "geo = { database = \"c.mmdb\" },", ["policies/phone_otp.lua": policy]
    ).generation()
    let sweep = try #require(FunctionFuzzer(generation, providers: try ProviderRegistry([PhoneOTP()])))
    let faults = sweep.run().faults.map(\.problem.description)
    #expect(
      faults.count == 1 && faults[0].hasPrefix("policies/phone_otp.lua:3: attempt to index a nil value"), "\(faults)")
  }

  /// Cases say where an address is, so that they do not depend on the database of the day.
  @Test func casesCountByCountryAndSystem() async throws {
    let policy = """
      return policy "phone_otp" {
        limits = {
          verify = { on = "verify", per = "phone", max = 5, window = "24h" },
          send_country = { on = "send", per = "client_country", max = 2, window = "1h" },
          send_asn = { on = "send", per = "asn", max = 3, window = "1h" },
        },
      }
      """
    let cases = """
      return tests {
        case "one country" {
          client { ip = "198.51.100.1", country = "DE" }, flow "enter", phone "+919000000001", send(),
          client { ip = "198.51.101.1", country = "DE" }, flow "enter", phone "+919000000002", send(),
          client { ip = "198.51.102.1", country = "DE" }, flow "enter", phone "+919000000003", send(),
          expect { status = 429, code = "rate_limited", messages = 2 },
          client { country = "FR" }, flow "enter", send(), expect { messages = 3 },
        },
        case "one system" {
          client { country = "DE", asn = 64500 }, flow "enter", phone "+919000000001", send(),
          client { country = "FR", asn = 64500 }, flow "enter", phone "+919000000002", send(),
          client { country = "IN", asn = 64500 }, flow "enter", phone "+919000000003", send(), expect { messages = 3 },
          client { country = "US", asn = 64500 }, flow "enter", phone "+919000000004", send(),
          expect { status = 429, code = "rate_limited", messages = 3 },
        },
        case "an address that no database has" {
          flow "enter", phone "+919000000001", send(), flow "enter", phone "+919000000002", send(),
          flow "enter", phone "+919000000003", send(), flow "enter", phone "+919000000004", send(),
          expect { messages = 4 },
          client { country = "DE" }, client { ip = "198.51.100.9" }, request { path = "/in/x" },
          expect { status = 401 },
        },
      }
      """
    let folder = try folder(
      "geo = { database = \"c.mmdb\", asn = \"a.mmdb\" },",
      [
        "policies/phone_otp.lua": policy, "tests/a.lua": cases,
        "flows/enter.lua": "return flow \"enter\" { account = \"any\", steps = { { \"phone_otp\" } } }",
      ])
    let loader = ConfigurationLoader(providers: TestFolder.providers.map(DescribedProvider.init), environment: [:])
    let loaded = try loader.read(folder: folder.scratch.path).get()
    let runner = CaseRunner(
      loaded.generation, providers: try ProviderRegistry([PhoneOTP()]), makeStore: { try SQLiteStore.memory() })
    let report = try await runner.run(loaded.cases)
    let (holds, text) = (report.holds, report.text(colour: false))
    #expect(holds, "\(text)")
  }

  @Test(arguments: [
    (
      "country = \"de\"",
      "client.country: \"de\" is not a country code of two capital letters (ISO 3166-1); did you mean `DE`?"
    ),
    ("country = 1", "client.country: must be a text in quotes"), ("asn = -1", "client.asn: "),
    ("asn = \"AS1\"", "client.asn: must be a whole number"),
  ])
  func invalidPlaceOfACaseIsReported(_ field: String, _ problem: String) throws {
    let cases = "return tests { case \"a\" {\n client { \(field) }, flow \"login\" } }"
    let problems = try folder("", ["tests/a.lua": cases]).problems()
    #expect(problems.contains { $0.hasPrefix("tests/a.lua:2: \(problem)") }, "\(problems)")
  }
}
