import Foundation
import MoongateCore
import MoongateHTTP
import MoongateProgram
import MoongateTesting
import Testing

@testable import MoongateGateway

@Suite("Sockets from systemd", .serialized) struct InheritedSocketsTests {
  private static let process: pid_t = 4711
  /// A descriptor number far from those of other tests.
  private static let first: CInt = 700

  /// Takes sockets, one for each name.
  /// - Parameter make: creates the descriptor of a name; nil for none.
  private func take(
    _ names: [String], listenPID: String = "\(process)",
    make: (String) throws -> CInt? = { _ in try listening("127.0.0.1") }
  ) throws -> InheritedSockets {
    for (index, name) in names.enumerated() {
      let place = Self.first + CInt(index)
      close(place)
      guard let made = try make(name) else { continue }
      #expect(dup2(made, place) == place)
      close(made)
    }
    return try InheritedSockets(
      environment: [
        "LISTEN_PID": listenPID, "LISTEN_FDS": "\(names.count)", "LISTEN_FDNAMES": names.joined(separator: ":"),
      ], process: Self.process,
      first: Self.first)
  }

  private static func listening(_ host: String) throws -> CInt {
    try ListeningSocket.open(ListenAddress(host: host, port: 0)).duplicate()
  }

  private func problem(_ body: () throws -> InheritedSockets) -> String? {
    do {
      _ = try body()
      return nil
    } catch {
      return (error as? StartProblem)?.sentence
    }
  }

  @Test func socketsAreTakenByName() throws {
    let taken = try take(["admin", "listen"])
    let (admin, listen) = (try #require(taken.admin), try #require(taken.listen))
    #expect(admin.address.host == "127.0.0.1" && admin.address.port > 0 && admin.address != listen.address)
    #expect(fcntl(Self.first, F_GETFD) & FD_CLOEXEC != 0, "programs that the gateway starts do not hold it")
  }

  @Test func withoutVariablesThereAreNone() throws {
    let taken = try InheritedSockets(environment: [:], process: Self.process)
    #expect(taken.listen == nil && taken.admin == nil)
  }

  /// Attack: variables inherited from a parent process refer to descriptors that belong to something else.
  @Test func socketsForAnotherProcessAreLeftAlone() throws {
    let taken = try take(["listen"], listenPID: "1")
    #expect(taken.listen == nil)
    close(Self.first)
  }

  @Test func aSocketWithAnotherNameIsRefused() throws {
    let told = try #require(problem { try take(["moongate.socket"]) })
    #expect(told.contains("is named \"moongate.socket\". Set FileDescriptorName=listen or FileDescriptorName=admin."))
  }

  @Test func twoSocketsOfOneNameAreRefused() {
    #expect(
      problem { try take(["listen", "listen"]) }
        == "Sockets from systemd: Two sockets are named listen. One is enough: ListenStream=[::]:443 accepts IPv4 connections too."
    )
  }

  @Test func socketThatDoesNotListenIsRefused() {
    let notListening: (String) -> CInt? = { _ in socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0) }
    let told =
      "Sockets from systemd: The socket named \"listen\" is not a listening TCP socket. Set ListenStream=ADDRESS:PORT and remove Accept=."
    #expect(problem { try take(["listen"], make: notListening) } == told)
    #expect(problem { try take(["listen"], make: { _ in open("/dev/null", O_RDONLY) }) } == told)
    #expect(
      problem { try take(["listen"], make: { _ in nil }) }
        == "Sockets from systemd: Descriptor 700 of LISTEN_FDS is not open.")
  }

  /// Attack: a socket unit exposes the admin listener to other machines, with a configuration that is safe only on
  /// loopback.
  @Test func anAdminSocketThatOthersReachNeedsAToken() throws {
    let everywhere = try take(["admin"]) { _ in try Self.listening("0.0.0.0") }
    let listenAddresses = ListenAddresses(sockets: everywhere)
    let said = try #require(listenAddresses.problems(of: .test()).first?.message)
    #expect(said.hasPrefix("other machines can reach 0.0.0.0:") && said.contains("(systemd's socket)"))
    #expect(ListenAddresses(sockets: try take(["admin"])).problems(of: .test()).isEmpty)
  }

  @Test func socketOfAnotherAddressIsReported() throws {
    let listenAddresses = ListenAddresses(sockets: try take(["listen"]))
    let address = try #require(listenAddresses.listen)
    #expect(
      listenAddresses.differences(from: .test())
        == [
          "`listen` in gateway.lua is 127.0.0.1:0, and systemd's socket listens on \(address). The socket's address is used."
        ])
  }

  @Test func closedSocketCannotBeHandedOver() throws {
    let socket = try ListeningSocket.open(ListenAddress(host: "127.0.0.1", port: 0))
    let copy = try socket.duplicate()
    #expect(fcntl(copy, F_GETFD) & FD_CLOEXEC != 0)
    close(copy)
    socket.release()
    #expect(throws: ListeningSocket.Problem.self) { try socket.duplicate() }
  }

  @Test(arguments: [
    (
      EADDRINUSE,
      "Port 443 on 127.0.0.1 is in use by another program. Stop it, or set another port in `listen` in gateway.lua."
    ),
    (
      EACCES,
      "Port 443 on 127.0.0.1 cannot be used by this user. Set a port above 1023 in `listen` in gateway.lua, or let systemd open the port "
        + "(moongate.socket)."
    ),
    (EADDRNOTAVAIL, "This machine has no address 127.0.0.1. Correct `listen` in gateway.lua."),
  ]) func unusableAddressIsReportedInOneSentence(_ code: CInt, _ sentence: String) {
    #expect(Listener.sentence(code, name: "listen", address: ListenAddress(host: "127.0.0.1", port: 443)) == sentence)
  }
}
