// swift-tools-version: 6.2
import PackageDescription

// Moongate with your provider and the included ones. It builds the whole gateway, so it is separate from the package of
// the provider and its tests.
let package = Package(
  name: "gateway",
  dependencies: [
    .package(name: "new-provider", path: ".."),
    .package(name: "moongate", path: "/moongate"),
  ],
  targets: [
    .executableTarget(
      name: "gateway",
      dependencies: [
        .product(name: "NewProvider", package: "new-provider"), .product(name: "MoongateCommand", package: "moongate"),
      ])
  ],
  swiftLanguageModes: [.v6]
)
