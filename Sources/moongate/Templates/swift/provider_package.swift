// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "new-provider",
  products: [.library(name: "NewProvider", targets: ["NewProvider"])],
  dependencies: [.package(name: "moongate", path: "/moongate")],
  targets: [
    // Sees MoongateSDK and nothing else of Moongate. So does its test, which therefore builds without the gateway: that
    // is a package of its own, in gateway/.
    .target(
      name: "NewProvider", dependencies: [.product(name: "MoongateSDK", package: "moongate")],
      resources: [.embedInCode("Resources")]),
    .testTarget(
      name: "NewProviderTests",
      dependencies: [
        "NewProvider", .product(name: "MoongateSDK", package: "moongate"),
        .product(name: "MoongateConformance", package: "moongate"),
      ]),
  ],
  swiftLanguageModes: [.v6]
)
