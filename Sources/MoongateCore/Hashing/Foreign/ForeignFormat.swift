import Foundation

/// A format in which other programs write password hashes.
struct ForeignFormat: Sendable {
  typealias Problem = StoredHash.Problem

  /// The programs that write it.
  let programs: String
  /// Its form, as the guide shows it.
  let form: String
  /// The beginnings by which it is recognized, each with the function of the hash.
  let beginnings: [String: ForeignDigest]
  /// Reads the text behind the beginning.
  /// - Parameter whole: the whole text.
  let read: @Sendable (_ rest: Substring, _ function: ForeignDigest, _ whole: String) throws(Problem) -> ForeignHash

  /// All formats. No beginning is the beginning of another one.
  static let all = [
    ForeignFormat(
      programs: "passlib, Keycloak", form: "$pbkdf2-sha256$ITERATIONS$SALT$DIGEST",
      beginnings: ["$pbkdf2$": .sha1, "$pbkdf2-sha256$": .sha256, "$pbkdf2-sha512$": .sha512]
    ) { (rest, function, _) throws(Problem) in
      let fields = try ForeignText.fields(rest, 3)
      return try pbkdf2(function, fields[0], salt: ForeignText.base64(fields[1]), ForeignText.base64(fields[2]))
    },
    ForeignFormat(
      programs: "Django", form: "pbkdf2_sha256$ITERATIONS$SALT$DIGEST",
      beginnings: ["pbkdf2_sha1$": .sha1, "pbkdf2_sha256$": .sha256]
    ) { (rest, function, _) throws(Problem) in
      let fields = try ForeignText.fields(rest, 3)
      return try pbkdf2(function, fields[0], salt: Array(fields[1].utf8), ForeignText.base64(fields[2]))
    },
    ForeignFormat(
      programs: "Werkzeug (Flask)", form: "pbkdf2:sha256:ITERATIONS$SALT$DIGEST",
      beginnings: ["pbkdf2:sha1:": .sha1, "pbkdf2:sha256:": .sha256, "pbkdf2:sha512:": .sha512]
    ) { (rest, function, _) throws(Problem) in
      let fields = try ForeignText.fields(rest, 3)
      return try pbkdf2(function, fields[0], salt: Array(fields[1].utf8), ForeignText.hex(fields[2]))
    },
    ForeignFormat(
      programs: "ASP.NET Core Identity, version 3", form: "AQAAAA…", beginnings: ["AQAAAA": .sha256],
      read: { (_, _, whole) throws(Problem) in try aspNet(ForeignText.base64(whole[...])) }),
    ForeignFormat(
      programs: "passlib, Node (crypto.scrypt)", form: "$scrypt$ln=LOG_N,r=R,p=P$SALT$DIGEST",
      beginnings: ["$scrypt$": .sha256]
    ) { (rest, _, _) throws(Problem) in
      let fields = try ForeignText.fields(rest, 3)
      let cost = try ForeignText.fields(fields[0], 3, separator: ",")
      return try ForeignHash(
        .scrypt(
          ScryptCost(
            logarithm: ForeignText.number(cost[0], "ln="), blockSize: ForeignText.number(cost[1], "r="),
            lanes: ForeignText.number(cost[2], "p=")), salt: ForeignText.base64(fields[1])),
        ForeignText.base64(fields[2]))
    },
    ForeignFormat(programs: "Django", form: "scrypt$N$SALT$R$P$DIGEST", beginnings: ["scrypt$": .sha256]) {
      (rest, _, _) throws(Problem) in
      let fields = try ForeignText.fields(rest, 5)
      return try ForeignHash(
        .scrypt(try scrypt(fields[0], fields[2], fields[3]), salt: Array(fields[1].utf8)),
        ForeignText.base64(fields[4]))
    },
    ForeignFormat(programs: "Werkzeug (Flask)", form: "scrypt:N:R:P$SALT$DIGEST", beginnings: ["scrypt:": .sha256]) {
      (rest, _, _) throws(Problem) in
      let fields = try ForeignText.fields(rest, 3)
      let cost = try ForeignText.fields(fields[0], 3, separator: ":")
      return try ForeignHash(
        .scrypt(try scrypt(cost[0], cost[1], cost[2]), salt: Array(fields[1].utf8)), ForeignText.hex(fields[2]))
    },
    ForeignFormat(
      programs: "Firebase", form: "$firebase-scrypt$ln=MEM_COST,r=ROUNDS$SALT_SEPARATOR$SIGNER_KEY$SALT$DIGEST",
      beginnings: ["$firebase-scrypt$": .sha256], read: { (rest, _, _) throws(Problem) in try firebase(rest) }),
    ForeignFormat(
      programs: "crypt of Unix, passlib, LDAP ({CRYPT})", form: "$6$SALT$DIGEST, $5$SALT$DIGEST",
      beginnings: ["$5$": .sha256, "$6$": .sha512]
    ) { (rest, function, whole) throws(Problem) in
      try crypt(function == .sha256 ? .sha256 : .sha512, rest, whole)
    },
    ForeignFormat(programs: "crypt of Unix, passlib (weak)", form: "$1$SALT$DIGEST", beginnings: ["$1$": .md5]) {
      (rest, _, whole) throws(Problem) in try crypt(.md5, rest, whole)
    },
    ForeignFormat(
      programs: "LDAP", form: "{SSHA}…, {SSHA256}…, {SSHA512}…",
      beginnings: ["{SSHA}": .sha1, "{SSHA256}": .sha256, "{SSHA384}": .sha384, "{SSHA512}": .sha512, "{SMD5}": .md5]
    ) { (rest, function, _) throws(Problem) in
      let bytes = try ForeignText.base64(rest)
      guard bytes.count > function.size else { throw .tooWeak }
      return try ForeignHash(
        .digest(function, salt: Array(bytes.dropFirst(function.size)), isSaltFirst: false),
        Array(bytes.prefix(function.size)))
    },
    ForeignFormat(
      programs: "LDAP (weak)", form: "{SHA}…, {MD5}…", beginnings: ["{SHA}": .sha1, "{MD5}": .md5]
    ) { (rest, function, _) throws(Problem) in
      let bytes = try ForeignText.base64(rest)
      guard bytes.count == function.size else { throw .illFormed }
      return try ForeignHash(.digest(function, salt: [], isSaltFirst: false), bytes)
    },
    ForeignFormat(programs: "Django (weak)", form: "md5$SALT$DIGEST", beginnings: ["md5$": .md5]) {
      (rest, function, _) throws(Problem) in
      let fields = try ForeignText.fields(rest, 2)
      let digest = try ForeignText.hex(fields[1])
      guard digest.count == function.size else { throw .illFormed }
      return try ForeignHash(.digest(function, salt: Array(fields[0].utf8), isSaltFirst: true), digest)
    },
  ]

  /// The hash that a text contains; nil if no format has its beginning.
  /// - Parameter text: untrusted printable ASCII without spaces, at most 512 bytes.
  static func read(_ text: String) throws(Problem) -> ForeignHash? {
    for format in all {
      for (beginning, function) in format.beginnings where text.hasPrefix(beginning) {
        return try format.read(text.dropFirst(beginning.count), function, text)
      }
    }
    return nil
  }

  // MARK: Formats of several programs

  private static func pbkdf2(_ function: ForeignDigest, _ iterations: Substring, salt: [UInt8], _ digest: [UInt8])
    throws(Problem) -> ForeignHash
  {
    try ForeignHash(.pbkdf2(function, iterations: ForeignText.number(iterations), salt: salt), digest)
  }

  /// - Parameters: N, r and p. N is a power of two (RFC 7914 section 6).
  private static func scrypt(_ size: Substring, _ blockSize: Substring, _ lanes: Substring) throws(Problem)
    -> ScryptCost
  {
    let size = try ForeignText.number(size)
    guard size & (size - 1) == 0 else { throw .illFormed }
    return try ScryptCost(
      logarithm: size.trailingZeroBitCount, blockSize: ForeignText.number(blockSize), lanes: ForeignText.number(lanes))
  }

  private static func firebase(_ rest: Substring) throws(Problem) -> ForeignHash {
    let fields = try ForeignText.fields(rest, 5, mayBeEmpty: [1])
    let cost = try ForeignText.fields(fields[0], 2, separator: ",")
    let signerKey = try ForeignText.base64(fields[2])
    let digest = try ForeignText.base64(fields[4])
    let salt = try ForeignText.base64(fields[3])
    guard signerKey.count == digest.count else { throw .illFormed }
    // The separator is one for all accounts of a project.
    guard !salt.isEmpty else { throw .tooWeak }
    return try ForeignHash(
      .firebase(
        ScryptCost(
          logarithm: ForeignText.number(cost[0], "ln="), blockSize: ForeignText.number(cost[1], "r="), lanes: 1),
        salt: salt + ForeignText.base64(fields[1]), signerKey: signerKey), digest)
  }

  /// A byte 1, then big-endian 32-bit numbers (the function: 0 SHA-1, 1 SHA-256, 2 SHA-512; the iterations; the length
  /// of the salt), the salt and the digest, as `PasswordHasher` of ASP.NET Core Identity writes them.
  private static func aspNet(_ bytes: [UInt8]) throws(Problem) -> ForeignHash {
    guard bytes.count > 13, bytes[0] == 1 else { throw .illFormed }
    let numbers = (0..<3).map { index in
      bytes[(1 + index * 4)..<(5 + index * 4)].reduce(0) { $0 << 8 | Int($1) }
    }
    let functions: [ForeignDigest] = [.sha1, .sha256, .sha512]
    guard functions.indices.contains(numbers[0]), numbers[1] >= 1, numbers[2] >= 1, bytes.count > 13 + numbers[2] else {
      throw .illFormed
    }
    return try ForeignHash(
      .pbkdf2(functions[numbers[0]], iterations: numbers[1], salt: Array(bytes[13..<(13 + numbers[2])])),
      Array(bytes[(13 + numbers[2])...]))
  }

  /// `rounds=N$` is optional before the salt: without it, SHA-crypt makes 5,000 rounds. MD5-crypt always makes 1,000.
  private static func crypt(_ function: ForeignCrypt, _ rest: Substring, _ whole: String) throws(Problem)
    -> ForeignHash
  {
    let hasRounds = function != .md5 && rest.hasPrefix("rounds=")
    let fields = try ForeignText.fields(rest, hasRounds ? 3 : 2)
    let rounds =
      if hasRounds { try ForeignText.number(fields[0], "rounds=") } else { function == .md5 ? 1000 : 5000 }
    let length = [ForeignCrypt.md5: 22, .sha256: 43, .sha512: 86][function] ?? 0
    // libcrypt reads fewer rounds as 1,000.
    guard rounds >= 1000, let salt = fields.dropLast().last, salt.utf8.count <= function.longestSalt,
      let digest = fields.last, digest.utf8.count == length,
      (salt + digest).utf8.allSatisfy(ForeignText.isCryptLetter)
    else { throw .illFormed }
    return try ForeignHash(
      .crypt(function, rounds: rounds, saltLength: salt.utf8.count, setting: whole), Array(whole.utf8))
  }
}

/// Reads the parts of a hash.
private enum ForeignText {
  typealias Problem = StoredHash.Problem

  /// - Parameter mayBeEmpty: the indices of fields that may be empty.
  static func fields(_ text: Substring, _ count: Int, separator: Character = "$", mayBeEmpty: Set<Int> = [])
    throws(Problem) -> [Substring]
  {
    let fields = text.split(separator: separator, omittingEmptySubsequences: false)
    guard fields.count == count, fields.indices.allSatisfy({ !fields[$0].isEmpty || mayBeEmpty.contains($0) }) else {
      throw .illFormed
    }
    return fields
  }

  /// A positive number without leading zeros, behind a name.
  static func number(_ text: Substring, _ name: String = "") throws(Problem) -> Int {
    let digits = text.dropFirst(name.count)
    guard text.hasPrefix(name), !digits.isEmpty, digits.first != "0", digits.utf8.allSatisfy({ (48...57).contains($0) })
    else { throw .illFormed }
    // Attack: 2^40 iterations, or a number that no integer holds.
    guard digits.count <= 9, let number = Int(digits) else { throw .tooExpensive }
    return number
  }

  /// Base64 with or without padding, also with the letters of URLs and of passlib (`.` for `+`).
  static func base64(_ text: Substring) throws(Problem) -> [UInt8] {
    let letters = text.replacing("-", with: "+").replacing(".", with: "+").replacing("_", with: "/")
    let bare =
      letters.hasSuffix("==") ? letters.dropLast(2) : letters.hasSuffix("=") ? letters.dropLast() : letters[...]
    guard !bare.contains("="),
      let data = Data(base64Encoded: bare + String(repeating: "=", count: (4 - bare.utf8.count % 4) % 4))
    else { throw .illFormed }
    return Array(data)
  }

  static func hex(_ text: Substring) throws(Problem) -> [UInt8] {
    let digits = text.utf8.compactMap { UInt8(Character(UnicodeScalar($0)).hexDigitValue ?? 16) }
    guard digits.count.isMultiple(of: 2), digits.allSatisfy({ $0 < 16 }) else { throw .illFormed }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }

  /// The alphabet of libcrypt.
  static func isCryptLetter(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: ".")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "a")...UInt8(ascii: "z"):
      true
    default: false
    }
  }
}
