// swift-tools-version: 6.3
import PackageDescription

/// The settings of all targets in this package: explicit `any`, imports visible only where declared, and warnings as
/// errors.
let strict: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .treatAllWarnings(as: .error),
]

/// The settings of the targets in which tests spend most of their time. `make test` optimizes them in a clean clone, as
/// the Makefile explains. Other packages cannot depend on targets with unsafe flags, so the flag is not there for them.
let busy =
  strict
  + (Context.environment["MOONGATE_OPTIMIZED", default: ""].isEmpty
    ? [] : [.unsafeFlags(["-O"], .when(configuration: .debug))])

// Products of other packages.
let hummingbird: Target.Dependency = .product(name: "Hummingbird", package: "hummingbird")
let hummingbirdCore: Target.Dependency = .product(name: "HummingbirdCore", package: "hummingbird")
let mustache: Target.Dependency = .product(name: "Mustache", package: "swift-mustache")
let nioCore: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let nioPosix: Target.Dependency = .product(name: "NIOPosix", package: "swift-nio")
let nioHTTP1: Target.Dependency = .product(name: "NIOHTTP1", package: "swift-nio")
let nioEmbedded: Target.Dependency = .product(name: "NIOEmbedded", package: "swift-nio")
let nioSSL: Target.Dependency = .product(name: "NIOSSL", package: "swift-nio-ssl")
let nioTLS: Target.Dependency = .product(name: "NIOTLS", package: "swift-nio")
let nioHTTPTypes: Target.Dependency = .product(name: "NIOHTTPTypes", package: "swift-nio-extras")
let httpTypes: Target.Dependency = .product(name: "HTTPTypes", package: "swift-http-types")
let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
let cryptoExtras: Target.Dependency = .product(name: "CryptoExtras", package: "swift-crypto")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let lifecycle: Target.Dependency = .product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let unixSignals: Target.Dependency = .product(name: "UnixSignals", package: "swift-service-lifecycle")
let arguments: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")
let http2: Target.Dependency = .product(name: "NIOHTTP2", package: "swift-nio-http2")
let hpack: Target.Dependency = .product(name: "NIOHPACK", package: "swift-nio-http2")
let httpClient: Target.Dependency = .product(name: "AsyncHTTPClient", package: "async-http-client")
let jwt: Target.Dependency = .product(name: "JWTKit", package: "jwt-kit")
let metrics: Target.Dependency = .product(name: "Metrics", package: "swift-metrics")
let tracing: Target.Dependency = .product(name: "Tracing", package: "swift-distributed-tracing")
let certificates: Target.Dependency = .product(name: "X509", package: "swift-certificates")
let asn1: Target.Dependency = .product(name: "SwiftASN1", package: "swift-asn1")
let grdb: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift")
let sqlite: Target.Dependency = .product(name: "GRDBSQLite", package: "GRDB.swift")

/// A compiled-in provider: the target of its folder in Plugins/ and the target of its tests.
///
/// It depends only on MoongateSDK, without package access, like a provider outside this repository.
struct CompiledIn {
  let dependency: Target.Dependency
  let targets: [Target]

  /// - Parameters:
  ///   - uses: additional dependencies.
  ///   - shim: the folder of a C shim, and the system libraries that it wraps.
  ///   - leavesOut: resource files that are not embedded.
  ///   - testsUse: additional dependencies of its tests.
  init(
    _ name: String, uses: [Target.Dependency] = [], shim: (name: String, libraries: [String])? = nil,
    leavesOut: [String] = [],
    testsUse: [Target.Dependency] = []
  ) {
    dependency = .byName(name: name)
    let folder = "Plugins/\(name)"
    let shims = [shim].compactMap { $0 }
    targets =
      shims.map {
        .target(
          name: $0.name, path: "\(folder)/\($0.name)", linkerSettings: $0.libraries.map { .linkedLibrary($0) })
      }
      + [
        .target(
          name: name, dependencies: ["MoongateSDK"] + shims.map { .byName(name: $0.name) } + uses, path: folder,
          exclude: ["README.md", "Tests"] + shims.map(\.name) + leavesOut, packageAccess: false, swiftSettings: strict,
          plugins: ["EmbedFiles"]),
        .testTarget(
          name: "\(name)Tests",
          dependencies: ["MoongateSDK", "MoongateConformance", .byName(name: name)] + uses + testsUse,
          path: "\(folder)/Tests",
          packageAccess: false, swiftSettings: strict),
      ]
  }
}

/// The compiled-in providers. Sources/MoongateProgram/Providers.swift lists them in the order in which pages offer
/// them.
let providers = [
  CompiledIn("PhoneOTP", shim: ("CPhoneNumber", libraries: ["phonenumber"])),
  CompiledIn("EmailCode"),
  CompiledIn("PIN", leavesOut: ["subject.json"]),
  CompiledIn("Passkey", uses: [crypto, cryptoExtras, certificates, asn1], leavesOut: ["key.py", "subject.json"]),
  CompiledIn("Password", uses: [crypto], leavesOut: ["make-common.py"]),
  CompiledIn("LDAP", shim: ("CLDAP", libraries: ["ldap", "lber"])),
  CompiledIn("OpenID", uses: [jwt, crypto], testsUse: [cryptoExtras]),
  CompiledIn("TOTP", uses: [crypto], leavesOut: ["subject.json"]),
]

/// Build information from the packaging targets of the Makefile, for `moongate --version`. It is empty in other builds,
/// so that a new commit rebuilds nothing.
let buildFacts: [CSetting] = ["MOONGATE_COMMIT", "MOONGATE_SWIFT", "MOONGATE_NIO_SSL"].compactMap { name in
  guard let value = Context.environment[name], !value.isEmpty,
    value.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || ".-".contains($0)) })
  else {
    return nil
  }
  return .define(name, to: "\"\(value)\"")
}

let package = Package(
  name: "moongate",
  products: [
    .executable(name: "moongate", targets: ["moongate"]),
    .executable(name: "moongate-provider", targets: ["moongate-provider"]),
    .library(name: "MoongateSDK", targets: ["MoongateSDK"]),
    .library(name: "MoongateConformance", targets: ["MoongateConformance"]),
    // For programs that add their own providers.
    .library(name: "MoongateCommand", targets: ["MoongateCommand"]),
  ],
  dependencies: [
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
    .package(url: "https://github.com/hummingbird-project/swift-mustache", from: "2.1.1"),
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
    .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    .package(url: "https://github.com/vapor/jwt-kit", from: "5.7.1"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
    .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.2"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    .package(url: "https://github.com/apple/swift-certificates", from: "1.21.1"),
    .package(url: "https://github.com/apple/swift-asn1", from: "1.7.4"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
  ],
  targets: [
    // The allowed imports between modules. Builds check them (explicit-target-dependency-import-check).
    // Foundation's ICU has the data that compare names (UTS 39). Foundation loads it already.
    .target(name: "MoongateSDK", swiftSettings: busy, linkerSettings: [.linkedLibrary("_FoundationICU")]),
    // Embeds resource files as `PackageResources`.
    .plugin(
      name: "EmbedFiles", capability: .buildTool, dependencies: ["embed-files"], path: "Sources/EmbedFiles/Plugin"),
    .executableTarget(name: "embed-files", path: "Sources/EmbedFiles/Tool", swiftSettings: strict),
    // The conformance suite, without package access, like tests outside this repository.
    .target(name: "MoongateConformance", dependencies: ["MoongateSDK"], packageAccess: false, swiftSettings: strict),
    .target(
      name: "MoongateCore", dependencies: ["MoongateSDK", "CArgon2", crypto, cryptoExtras, logging, tracing],
      exclude: ["README.md", "FlowRules/flow.mermaid"],
      swiftSettings: busy),
    .target(name: "CSpawn"),
    .target(name: "CLinux"),
    .target(
      name: "CVersions", cSettings: buildFacts,
      linkerSettings: ["lua5.4", "sqlite3", "crypto", "pq", "curl", "z", "qrencode", "maxminddb"].map {
        .linkedLibrary($0)
      }),
    .target(
      name: "MoongateExec", dependencies: ["MoongateSDK", "CSpawn", logging], exclude: ["README.md"],
      swiftSettings: strict),
    .target(name: "CArgon2", linkerSettings: [.linkedLibrary("argon2"), .linkedLibrary("crypt")]),
    .target(name: "CMaxMind", linkerSettings: [.linkedLibrary("maxminddb")]),
    .target(name: "CLua", linkerSettings: [.linkedLibrary("lua5.4")]),
    .target(
      name: "MoongatePolicy",
      dependencies: ["MoongateSDK", "MoongateCore", "CLua", "CLinux", "CMaxMind", nioSSL, crypto, logging],
      exclude: ["README.md"], swiftSettings: busy),
    .target(
      name: "CPostgres", linkerSettings: [.linkedLibrary("pq"), .linkedLibrary("ssl"), .linkedLibrary("crypto")]),
    .target(
      name: "MoongateStore", dependencies: ["MoongateSDK", "MoongateCore", "CPostgres", grdb, sqlite, crypto, logging],
      exclude: ["README.md"],
      swiftSettings: busy),
    .target(name: "CCurl", linkerSettings: [.linkedLibrary("curl")]),
    .target(
      name: "MoongateDelivery",
      dependencies: ["MoongateSDK", "MoongateCore", "CCurl", httpClient, nioCore, nioHTTP1, nioPosix, logging],
      exclude: ["README.md"],
      swiftSettings: strict),
    .target(
      name: "MoongateProxy",
      dependencies: [
        "MoongateSDK", "MoongateCore", http2, hpack, metrics, nioCore, nioPosix, nioTLS, nioHTTPTypes, nioSSL,
        httpTypes, crypto, logging, tracing,
      ],
      exclude: ["README.md"], swiftSettings: strict),
    .target(name: "CQRCode", linkerSettings: [.linkedLibrary("qrencode")]),
    .target(name: "CZlib", linkerSettings: [.linkedLibrary("z")]),
    .target(
      name: "MoongateHTTP",
      dependencies: [
        "MoongateSDK", "MoongateCore", "MoongateProxy", "CQRCode", "CZlib", hummingbird, hummingbirdCore, mustache,
        nioCore, nioPosix,
        nioHTTP1, nioHTTPTypes, httpTypes, crypto, logging, lifecycle, tracing,
      ],
      exclude: ["README.md", "Pages/Templates"], swiftSettings: strict, plugins: ["EmbedFiles"]),
    // The calls of the first apps, and the events of hosted pages.
    .target(
      name: "MoongateAppAPI",
      dependencies: ["MoongateSDK", "MoongateCore", "MoongateHTTP", hummingbird, httpTypes, logging],
      swiftSettings: strict),
    // The endpoints and pages of Moongate as an OpenID provider.
    .target(
      name: "MoongateApps",
      dependencies: [
        "MoongateSDK", "MoongateCore", "MoongateHTTP", hummingbird, httpTypes, crypto, cryptoExtras, logging,
      ],
      swiftSettings: strict),
    // What the programs share: how they run a command, print and log, and the list of compiled-in providers.
    .target(
      name: "MoongateProgram",
      dependencies: ["MoongateSDK", "MoongateCore", "MoongateExec", "CLinux", arguments, logging]
        + providers.map(\.dependency),
      swiftSettings: strict),
    // The commands and services of `moongate`.
    .target(
      name: "MoongateGateway",
      dependencies: [
        "MoongateSDK", "MoongateCore", "MoongatePolicy", "MoongateStore", "MoongateDelivery", "MoongateProxy",
        "MoongateHTTP", "MoongateAppAPI", "MoongateApps", "MoongateExec", "MoongateProgram", "CLinux", "CSpawn",
        "CVersions", arguments, lifecycle, unixSignals, logging, hummingbird, hummingbirdCore, nioCore, nioPosix,
        nioSSL, metrics, tracing,
      ],
      path: "Sources/moongate", exclude: ["README.md", "Main", "Templates"], swiftSettings: strict,
      plugins: ["EmbedFiles"]),
    .executableTarget(
      name: "moongate", dependencies: ["MoongateGateway", "MoongateProgram"], path: "Sources/moongate/Main",
      swiftSettings: strict),
    // The tools for authors of providers: the commands of `moongate-provider`.
    .target(
      name: "MoongateProviderTools",
      dependencies: [
        "MoongateSDK", "MoongateConformance", "MoongateCore", "MoongatePolicy", "MoongateExec", "MoongateProgram",
        arguments, logging,
      ],
      path: "Sources/moongate-provider", exclude: ["Main", "Templates"], swiftSettings: strict,
      plugins: ["EmbedFiles"]),
    .executableTarget(
      name: "moongate-provider", dependencies: ["MoongateProviderTools", "MoongateProgram"],
      path: "Sources/moongate-provider/Main", swiftSettings: strict),
    // Both programs as one library, for programs with their own providers.
    .target(
      name: "MoongateCommand",
      dependencies: ["MoongateSDK", "MoongateProgram", "MoongateGateway", "MoongateProviderTools"],
      swiftSettings: strict),
    // The service of the demo, and the mock of Google that it serves beside its pages.
    .target(
      name: "DemoGoogle",
      dependencies: ["MoongateSDK", hummingbird, httpTypes, nioCore, jwt, crypto, cryptoExtras], swiftSettings: strict),
    .executableTarget(
      name: "demo-service", dependencies: ["DemoGoogle", hummingbird, httpTypes, logging, arguments],
      swiftSettings: strict),

    .target(
      name: "MoongateTesting",
      dependencies: [
        "MoongateSDK", "MoongateConformance", "MoongateCore", "MoongateStore", "MoongatePolicy", "MoongateDelivery",
        crypto, logging,
      ],
      path: "Tests/MoongateTesting", swiftSettings: strict),
    .testTarget(
      name: "MoongateConformanceTests", dependencies: ["MoongateSDK", "MoongateConformance"], packageAccess: false,
      swiftSettings: strict),
    .testTarget(
      name: "ArchitectureTests", path: "Tests/Architecture", exclude: ["folders.txt"], swiftSettings: strict),
    .testTarget(name: "CLuaTests", dependencies: ["CLua"], swiftSettings: strict),
    .testTarget(
      name: "MoongateCoreTests",
      dependencies: ["MoongateSDK", "MoongateCore", "MoongateStore", "MoongateTesting", crypto, logging, tracing],
      swiftSettings: strict),
    .testTarget(
      name: "MoongatePolicyTests",
      dependencies: [
        "MoongateSDK", "MoongateCore", "MoongatePolicy", "MoongateStore", "CLua", "MoongateTesting", "ExhaustivePlay",
      ] + providers.map(\.dependency),
      swiftSettings: strict),
    // Compares the prover with exhaustive execution: a few configurations in tests, ten thousand in `make prove`.
    .target(
      name: "ExhaustivePlay",
      dependencies: [
        "MoongateSDK", "MoongateCore", "MoongatePolicy", "MoongateStore", "MoongateTesting",
      ] + providers.map(\.dependency),
      path: "Tests/ExhaustivePlay", exclude: ["Command"], swiftSettings: strict),
    .executableTarget(
      name: "prove", dependencies: ["ExhaustivePlay"], path: "Tests/ExhaustivePlay/Command", swiftSettings: strict),
    // Benchmarks policies, compared with plain Lua: `make bench-policy`.
    .target(name: "CBareLua", path: "Tests/Bench/CBareLua", linkerSettings: [.linkedLibrary("lua5.4")]),
    .executableTarget(
      name: "policy-bench", dependencies: ["MoongateSDK", "MoongateCore", "MoongatePolicy", "CBareLua"],
      path: "Tests/Bench/Policy",
      swiftSettings: strict),
    // Benchmarks a provider program, compared with the same provider in-process: `make bench-exec`.
    .executableTarget(
      name: "exec-bench", dependencies: ["MoongateSDK", "MoongateExec", logging], path: "Tests/Bench/Exec",
      exclude: ["word.py"],
      swiftSettings: strict),
    // Benchmarks PIN checks, compared with plain libargon2: `make bench-hash`.
    .executableTarget(
      name: "hash-bench", dependencies: ["MoongateSDK", "MoongateCore", "CArgon2"], path: "Tests/Bench/Hash",
      swiftSettings: strict),
    // A process that the store tests kill repeatedly.
    .executableTarget(
      name: "store-writer", dependencies: ["MoongateSDK", "MoongateCore", "MoongateStore", "MoongateTesting"],
      path: "Tests/StoreWriter",
      swiftSettings: strict),
    .testTarget(
      name: "MoongateStoreTests",
      dependencies: ["MoongateSDK", "MoongateCore", "MoongateStore", "MoongateTesting", "store-writer", grdb],
      swiftSettings: strict),
    .testTarget(
      name: "MoongateProxyTests",
      dependencies: [
        "MoongateSDK", "MoongateCore", "MoongateProxy", "MoongateTesting", http2, hpack, metrics, nioCore, nioPosix,
        nioTLS, nioEmbedded, nioHTTP1,
        nioHTTPTypes,
        httpTypes, crypto, logging,
      ],
      swiftSettings: strict),
    .testTarget(
      name: "MoongateHTTPTests",
      dependencies: [
        "MoongateSDK", "MoongateCore", "MoongateHTTP", "MoongateAppAPI", "MoongateApps", "MoongateProxy",
        "MoongateTesting", "MoongateStore", "MoongateDelivery", "DemoGoogle", crypto, cryptoExtras, hummingbird,
        .product(name: "HummingbirdTesting", package: "hummingbird"),
        httpTypes, nioCore, nioPosix,
        nioEmbedded, logging,
      ] + providers.map(\.dependency),
      swiftSettings: strict),
    .testTarget(
      name: "MoongateDeliveryTests",
      dependencies: [
        "MoongateSDK", "MoongateCore", "MoongateDelivery", "MoongateTesting", hummingbird,
        .product(name: "HummingbirdTesting", package: "hummingbird"), httpTypes, nioCore, nioPosix, logging,
      ],
      swiftSettings: strict),
    .testTarget(
      name: "MoongateExecTests", dependencies: ["MoongateSDK", "MoongateExec", "MoongateTesting", logging],
      swiftSettings: strict),
    .testTarget(
      name: "moongateTests",
      dependencies: [
        "MoongateGateway", "MoongateProviderTools", "MoongateProgram", "MoongateSDK", "MoongateCore", "MoongatePolicy",
        "MoongateHTTP", "MoongateTesting", arguments, nioCore, nioPosix, logging, lifecycle,
      ],
      swiftSettings: strict),
    .testTarget(
      name: "MoongateProviderToolsTests",
      dependencies: [
        "MoongateProviderTools", "MoongateProgram", "MoongateSDK", "MoongateConformance", "MoongateTesting",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "DemoGoogleTests", dependencies: ["DemoGoogle", hummingbird, httpTypes, nioCore, crypto],
      swiftSettings: strict),
    .testTarget(name: "MoongateSDKTests", dependencies: ["MoongateSDK"], swiftSettings: strict),
  ] + providers.flatMap(\.targets),
  cxxLanguageStandard: .cxx17
)
