// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "new-provider",
  products: [.library(name: "NewProvider", targets: ["NewProvider"])],
  dependencies: [.package(name: "moongate", path: "/moongate")],
  targets: [
    // Depends only on MoongateSDK. The tests build without the gateway, which is a separate package in gateway/.
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
