import CLDAP
import Foundation

/// The answer to a bind.
struct BindAnswer: Sendable, Equatable {
  /// The result code (RFC 4511 section 4.1.9).
  var code: Int
  /// The error of a password policy; nil without one.
  var policy: Int?
  /// What the server says about it, in printable ASCII.
  var text = ""
}

/// A search below a base.
struct DirectorySearch: Sendable, Equatable {
  let base: String
  let filter: String
  let attributes: [String]
  /// The maximum number of entries.
  let most: Int
}

/// A connection to a directory. All calls block the thread, and throw if the server does not answer.
protocol DirectoryConnection {
  func bind(_ name: String, _ password: [UInt8]) throws(DirectoryFault) -> BindAnswer
  /// - Returns: nil if there are more entries than the maximum.
  func entries(_ search: DirectorySearch) throws(DirectoryFault) -> [DirectoryEntry]?
}

/// A connection by libldap. It ends when it is released, and at the latest after the timeout: a server that sends one
/// byte a second would otherwise hold the thread for as long as it likes.
final class LDAPConnection: DirectoryConnection, Sendable {
  /// The maximum size of a message of the server, and of all values of one search, in bytes.
  private static let longest = 1 << 20

  /// A queue of its own: calls that block elsewhere do not delay it.
  private static let deadlines = DispatchQueue(label: "ldap deadlines")

  private let address: UInt
  private var handle: OpaquePointer? { OpaquePointer(bitPattern: address) }

  /// Connects.
  init(_ server: DirectoryServer, authority: String, timeout: Duration) throws(DirectoryFault) {
    let milliseconds = Int(timeout / .milliseconds(1))
    let made = server.url.withCString { url in
      authority.withCString { authority in
        var options = cldap_options(
          url: url, starts_tls: server.startsTLS, is_local_only: !server.isEncrypted, authority: authority,
          milliseconds: milliseconds, longest: Self.longest)
        return cldap_new(&options)
      }
    }
    guard let made else {
      throw DirectoryFault("\(server.url): no connection can be made. Check `ca`", isOfServer: true)
    }
    address = UInt(bitPattern: made)
    // libldap waits without a limit for an answer to its part of the TLS handshake.
    Self.deadlines.asyncAfter(deadline: .now() + .milliseconds(milliseconds)) { [weak self] in
      if let self { cldap_abort(handle) }
    }
    let result = cldap_connect(handle)
    guard result.code == 0 else {
      // What GnuTLS says about a certificate that is not trusted or not for the host.
      let isCertificate = result.said == "(unknown error code)"
      let said = isCertificate ? "TLS: check the certificate, the host in it, and `ca`" : result.said
      throw DirectoryFault(-1, said, in: "connecting to \(server.url)")
    }
  }

  deinit { cldap_free(handle) }

  func bind(_ name: String, _ password: [UInt8]) throws(DirectoryFault) -> BindAnswer {
    let result = name.withCString { name in
      password.withUnsafeBytes { cldap_bind(handle, name, $0.baseAddress, $0.count) }
    }
    guard result.code >= 0 else { throw DirectoryFault(Int(result.code), result.said, in: "a bind") }
    let policy = result.policy == CLDAP_NO_POLICY ? nil : Int(result.policy)
    return BindAnswer(code: Int(result.code), policy: policy, text: result.said)
  }

  func entries(_ search: DirectorySearch) throws(DirectoryFault) -> [DirectoryEntry]? {
    var names = search.attributes.map { strdup($0) } + [nil]
    defer { for name in names { free(name) } }
    let found = FoundEntries()
    let result = search.base.withCString { base in
      search.filter.withCString { filter in
        names.withUnsafeMutableBufferPointer { names in
          var query = cldap_query(
            base: base, filter: filter, attributes: names.baseAddress, entries: Int32(search.most),
            bytes: Self.longest)
          return cldap_search(handle, &query, Self.visit, Unmanaged.passUnretained(found).toOpaque())
        }
      }
    }
    if result.code == 4 { return nil }
    guard result.code == 0 else { throw DirectoryFault(Int(result.code), result.said, in: "a search") }
    return found.entries
  }

  private static let visit: cldap_visit = { context, attribute, value, length in
    guard let context else { return }
    let found = Unmanaged<FoundEntries>.fromOpaque(context).takeUnretainedValue()
    let bytes = UnsafeRawBufferPointer(start: value, count: length)
    guard let attribute else {
      found.entries.append(DirectoryEntry(name: String(decoding: bytes, as: UTF8.self)))
      return
    }
    found.entries[found.entries.count - 1].add(Array(bytes), to: String(cString: attribute))
  }
}

/// Collects the entries of one search.
private final class FoundEntries {
  var entries: [DirectoryEntry] = []
}

extension cldap_result {
  /// The server's message in printable ASCII, which is all that a log takes.
  fileprivate var said: String {
    withUnsafeBytes(of: text) { bytes in
      String(bytes.prefix { $0 != 0 }.map { (0x20...0x7e).contains($0) ? Character(Unicode.Scalar($0)) : "?" })
    }
  }
}
