// swift-tools-version: 6.2
import PackageDescription

// Set by `deploy/package`. It is unset in other builds, so that a new commit compiles and links nothing in them.
let commit = Context.environment["CONCLAVE_COMMIT"] ?? ""

// The order is the architecture: a target may depend only on targets above it (docs/architecture.md draws the arrows, ArchitectureTests checks them).
let package = Package(
  name: "conclave",
  // For ConclaveClient in an app; the server is for Linux.
  platforms: [.macOS(.v15), .iOS(.v18)],
  products: [
    .executable(name: "conclave", targets: ["conclave"]),
    .executable(name: "loadtest", targets: ["loadtest"]),
    .library(name: "ConclaveClient", targets: ["ConclaveClient"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
  ],
  targets: [
    // Debian's C libraries: a module map and `static inline` shims each, one Swift importer each (COpenSSL has two).
    .target(name: "CLinux"),
    .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CSTUN", providers: [.apt(["libnice-dev"])]),
    .systemLibrary(name: "CJansson", pkgConfig: "jansson", providers: [.apt(["libjansson-dev"])]),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    // Only libpq's header: a server opens the library when its configuration names a database.
    .systemLibrary(name: "CPostgreSQL", providers: [.apt(["libpq-dev"])]),
    // One C function, because a Swift target's defines have no values.
    .target(name: "CCommit", cSettings: [.define("CONCLAVE_COMMIT", to: "\"\(commit)\"")]),

    // Pure cores: no socket, no clock, no Foundation, no logger.
    .target(name: "Octets"),
    .target(name: "MediaModel"),
    .target(name: "Contract", dependencies: ["MediaModel"]),
    .target(name: "Recording", dependencies: ["Octets", "MediaModel", "Contract"]),
    .target(name: "RTP", dependencies: ["Octets"]),
    .target(name: "Reels", dependencies: ["Octets", "MediaModel", "RTP", "Recording"]),
    .target(name: "CongestionControl"),
    .target(name: "SDP", dependencies: ["MediaModel"]),
    .target(name: "Transport", dependencies: ["Octets", "MediaModel", "COpenSSL", "CSTUN"]),
    .target(name: "Cryptography", dependencies: ["COpenSSL"]),
    .target(name: "SFrame", dependencies: ["Octets", .product(name: "Crypto", package: "swift-crypto")]),
    .target(
      name: "Forwarding", dependencies: ["Octets", "MediaModel", "RTP", "CongestionControl", "Transport"]),
    .target(name: "Calls", dependencies: ["Octets", "MediaModel", "Contract", "Recording"]),
    .target(name: "Cluster", dependencies: ["MediaModel", "Calls"]),
    .target(name: "STOMP", dependencies: [.product(name: "NIOCore", package: "swift-nio")]),
    .target(name: "JSON", dependencies: ["CJansson"]),

    // Shells: they own sockets, clocks and threads.
    .target(name: "LinuxIO", dependencies: ["MediaModel", "CLinux"]),
    .target(name: "MediaPlane", dependencies: ["MediaModel", "RTP", "Reels", "Forwarding", "Transport", "LinuxIO"]),
    .target(name: "OutboundHTTP", dependencies: ["MediaModel", "LinuxIO", "CCurl"]),
    .target(
      name: "Listening",
      dependencies: [
        "Octets", "MediaModel",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOWebSocket", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
        .product(name: "Logging", package: "swift-log"),
      ]),
    .target(
      name: "Connections",
      dependencies: [
        "Octets", "MediaModel", "Contract", "Calls", "JSON", "Listening",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "Logging", package: "swift-log"),
      ]),
    // One front; another one would stand beside it.
    .target(
      name: "STOMPFront",
      dependencies: [
        "Octets", "MediaModel", "Contract", "Calls", "STOMP", "JSON", "Listening", "Connections",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOWebSocket", package: "swift-nio"),
        .product(name: "Logging", package: "swift-log"),
      ]),
    .target(name: "PostgreSQL", dependencies: ["MediaModel", "LinuxIO", "CPostgreSQL"]),
    .target(
      name: "ReelStore",
      dependencies: ["MediaModel", "Contract", "Recording", "Reels", "Calls", "Cryptography", "LinuxIO"]),
    .target(
      name: "Persistence",
      dependencies: [
        "MediaModel", "Contract", "Recording", "Calls", "JSON", "LinuxIO", "PostgreSQL",
        .product(name: "GRDB", package: "GRDB.swift"),
      ]),
    // The web client's library and page; it compiles to one path.
    .target(
      name: "Web",
      resources: [.copy("conclave"), .copy("page"), .copy("index.html"), .copy("manifest.webmanifest"), .copy("sw.js")]),
    .target(
      name: "ConclaveServer",
      dependencies: [
        "Octets", "MediaModel", "Contract", "SDP", "Calls", "Listening", "Connections", "STOMPFront", "Persistence",
        "PostgreSQL", "Recording", "Reels", "ReelStore", "MediaPlane", "Forwarding", "LinuxIO", "OutboundHTTP",
        "JSON", "Transport", "Cryptography", "CZlib", "Web",
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
      ]),
    .executableTarget(
      name: "conclave",
      dependencies: [
        "ConclaveServer", "CCommit", .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),

    // The other side of the wire.
    .target(
      name: "ConclaveClient",
      dependencies: [
        "Octets", "MediaModel", "Contract", "STOMP", "SFrame",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "CryptoExtras", package: "swift-crypto"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
        .product(name: "NIOWebSocket", package: "swift-nio"),
      ]),
    // Random numbers that a seed repeats, and bad network paths, for the tests and the load test.
    .target(name: "Seeded", dependencies: ["Octets"], path: "Tests/Seeded"),
    .target(name: "Paths", dependencies: ["Seeded"], path: "Tests/Paths"),
    .executableTarget(
      name: "loadtest",
      dependencies: [
        "ConclaveClient", "Octets", "MediaModel", "Transport", "RTP", "LinuxIO", "OutboundHTTP", "JSON", "Seeded",
        "Paths",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
      ],
      path: "loadtest",
      exclude: ["tools"]),

    .testTarget(name: "ArchitectureTests"),
    .testTarget(name: "OctetsTests", dependencies: ["Octets", "Seeded"]),
    .testTarget(name: "MediaModelTests", dependencies: ["MediaModel"]),
    .testTarget(name: "ContractTests", dependencies: ["Contract", "JSON"], exclude: ["Golden"]),
    .testTarget(
      name: "RecordingTests",
      dependencies: [
        "Seeded", "Octets", "MediaModel", "Contract", "Recording", .product(name: "Crypto", package: "swift-crypto"),
      ],
      exclude: ["Golden"]),
    .testTarget(name: "ReelsTests", dependencies: ["Seeded", "Octets", "MediaModel", "RTP", "Recording", "Reels"]),
    .testTarget(name: "RTPTests", dependencies: ["Seeded", "RTP"], exclude: ["Vectors"]),
    .testTarget(name: "CongestionControlTests", dependencies: ["Seeded", "CongestionControl", "CAllocations"]),
    .testTarget(name: "SDPTests", dependencies: ["Seeded", "SDP"], exclude: ["Vectors"]),
    // libsrtp2, with which our SRTP is compared; no product has it.
    .systemLibrary(name: "CSRTP", path: "Tests/CSRTP", providers: [.apt(["libsrtp2-dev"])]),
    .testTarget(
      name: "TransportTests",
      dependencies: ["Seeded", "Octets", "MediaModel", "Transport", "LinuxIO", "CSRTP", "CSTUN", "CAllocations"]),
    .testTarget(
      name: "ForwardingTests",
      dependencies: [
        "Octets", "MediaModel", "Forwarding", "CongestionControl", "Transport", "RTP", "LinuxIO", "CAllocations",
        "Paths",
      ]),
    // A disk that the simulated worlds share.
    .target(
      name: "Simulation", dependencies: ["Calls", "Contract", "MediaModel", "Octets", "Recording"],
      path: "Tests/Simulation"),
    // Writes to a store and waits; only for tests.
    .target(name: "StoreWriting", dependencies: ["Calls", "Persistence"], path: "Tests/StoreWriting"),
    .testTarget(
      name: "CallsTests",
      dependencies: [
        "Seeded", "Octets", "Calls", "Contract", "JSON", "LinuxIO", "MediaModel", "Recording", "Simulation",
      ],
      exclude: ["Golden"]),
    .testTarget(
      name: "ClusterTests", dependencies: ["Seeded", "MediaModel", "Calls", "Cluster"],
      exclude: ["Model", "kept-seeds"]),
    .testTarget(
      name: "EncryptedWorldTests",
      dependencies: [
        "Seeded", "Octets", "Calls", "Contract", "MediaModel", "ConclaveClient", "SFrame", "Simulation",
        .product(name: "Crypto", package: "swift-crypto"),
      ]),
    // A PostgreSQL server that goes with the tests; only for them.
    .target(name: "DatabaseServers", path: "Tests/DatabaseServers"),
    .testTarget(
      name: "ReelStoreTests",
      dependencies: [
        "Seeded", "Octets", "MediaModel", "Contract", "Recording", "Reels", "Calls", "Cryptography", "LinuxIO",
        "Persistence", "ReelStore",
      ]),
    .testTarget(
      name: "PersistenceTests",
      dependencies: [
        "Seeded", "Persistence", "PostgreSQL", "Calls", "Contract", "LinuxIO", "MediaModel", "Recording", "Simulation",
        "StoreWriting", "DatabaseServers",
        .product(name: "GRDB", package: "GRDB.swift"),
      ]),
    .testTarget(
      name: "STOMPTests", dependencies: ["Seeded", "STOMP", .product(name: "NIOCore", package: "swift-nio")]),
    .testTarget(name: "JSONTests", dependencies: ["Seeded", "JSON", "LinuxIO"]),
    .testTarget(name: "CryptographyTests", dependencies: ["Seeded", "Cryptography", "COpenSSL"], exclude: ["Vectors"]),
    .testTarget(
      name: "SFrameTests",
      dependencies: ["Seeded", "Octets", "SFrame", .product(name: "Crypto", package: "swift-crypto")],
      exclude: ["Vectors"]),
    // Counts a thread's calls of malloc; only for tests.
    .target(name: "CAllocations", path: "Tests/CAllocations"),
    .testTarget(name: "LinuxIOTests", dependencies: ["LinuxIO", "MediaModel", "CAllocations"]),
    .testTarget(
      name: "MediaPlaneTests",
      dependencies: [
        "MediaPlane", "Forwarding", "Transport", "RTP", "Octets", "Recording", "Reels", "LinuxIO", "MediaModel",
        "CAllocations",
      ]),
    // Clients made of raw bytes, so that they can also break the rules; only for tests.
    .target(
      name: "WireClients",
      dependencies: [
        "STOMP",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
        .product(name: "Logging", package: "swift-log"),
      ],
      path: "Tests/WireClients"),
    .testTarget(
      name: "ListeningTests",
      dependencies: [
        "Seeded", "MediaModel", "Listening", "WireClients",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOEmbedded", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOWebSocket", package: "swift-nio"),
        .product(name: "Logging", package: "swift-log"),
      ],
      exclude: ["Vectors"]),
    .testTarget(
      name: "ConnectionsTests",
      dependencies: [
        "Seeded", "MediaModel", "Contract", "Calls", "JSON", "Listening", "Connections", "WireClients",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "Logging", package: "swift-log"),
      ]),
    .testTarget(
      name: "STOMPFrontTests",
      dependencies: [
        "Seeded", "MediaModel", "Contract", "Calls", "STOMP", "JSON", "Listening", "Connections", "STOMPFront",
        "WireClients",
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
        .product(name: "Logging", package: "swift-log"),
      ]),
    .testTarget(
      name: "ConclaveServerTests",
      dependencies: [
        "Seeded", "Octets", "ConclaveServer", "MediaModel", "Contract", "SDP", "Calls", "Listening", "Connections",
        "STOMPFront", "Persistence", "Recording", "Reels", "ReelStore", "MediaPlane", "Transport", "Cryptography",
        "JSON", "LinuxIO", "OutboundHTTP", "CZlib", "StoreWriting", "DatabaseServers",
        .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "CryptoExtras", package: "swift-crypto"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
      ]),
    .testTarget(
      name: "LoadTestTests",
      dependencies: [
        "Seeded", "Paths", "loadtest", "Octets", "ConclaveClient", "MediaModel", "LinuxIO", "RTP", "SDP",
        "CAllocations",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
    .testTarget(
      name: "ConclaveClientTests",
      dependencies: [
        "Seeded", "Octets", "ConclaveClient", "ConclaveServer", "Contract", "LinuxIO", "MediaModel", "SFrame", "STOMP",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "CryptoExtras", package: "swift-crypto"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOEmbedded", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOWebSocket", package: "swift-nio"),
        .product(name: "Logging", package: "swift-log"),
      ],
      exclude: ["Vectors"]),
  ]
)

// `deploy/fuzz` links libFuzzer, so only its build has this target.
if Context.environment["CONCLAVE_FUZZ"] != nil {
  package.targets += [
    .systemLibrary(name: "CFuzzer", path: "Tests/CFuzzer"),
    .executableTarget(
      name: "fuzz",
      dependencies: [
        "CFuzzer", "Octets", "MediaModel", "Contract", "Recording", "RTP", "SDP", "Transport", "Cryptography", "SFrame",
        "Forwarding", "Calls", "STOMP", "JSON", "LinuxIO", "Listening", "Connections", "STOMPFront", "ConclaveServer",
        "ConclaveClient",
        .product(name: "Logging", package: "swift-log"),
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOEmbedded", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
        .product(name: "NIOWebSocket", package: "swift-nio"),
      ],
      path: "Tests/Fuzz", exclude: ["seeds.py"]),
  ]
}

// `deploy/test CallsTests` and the sanitizers build the named test targets and what they need, and nothing else.
if let names = Context.environment["CONCLAVE_TESTS"]?.split(separator: " ").map(String.init) {
  var needed: Set<String> = []
  var pending = names
  while let name = pending.popLast() {
    guard needed.insert(name).inserted, let target = package.targets.first(where: { $0.name == name }) else { continue }
    for case .byNameItem(let dependency, _) in target.dependencies { pending.append(dependency) }
  }
  package.products = []
  package.targets.removeAll { !needed.contains($0.name) }
}

let settings: [SwiftSetting] = [
  .treatAllWarnings(as: .error),
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]
for target in package.targets where target.type != .system {
  target.swiftSettings = (target.swiftSettings ?? []) + settings
}

// Optimizing the code of tests takes half of their compilers' time. These measure time, count allocations or simulate for long.
let fast: Set = [
  "CallsTests", "EncryptedWorldTests", "CongestionControlTests", "ForwardingTests", "LinuxIOTests", "TransportTests",
  "MediaPlaneTests", "ReelsTests", "ClusterTests",
]
for target in package.targets where target.type == .test && !fast.contains(target.name) {
  target.swiftSettings?.append(.unsafeFlags(["-Onone"]))
}
