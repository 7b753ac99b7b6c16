import Crypto
import Foundation
import MoongateCore
import MoongateProxy

/// Whether the assertion key of the key ring signed the bytes.
func verify(_ signed: Data, _ signature: Data, _ keys: KeyRing) throws -> Bool {
  keys.assertionKey(period: ManualClock.start.seconds / AssertionKeys.life).publicKey
    .isValidSignature(try P256.Signing.ECDSASignature(rawRepresentation: signature), for: signed)
}
