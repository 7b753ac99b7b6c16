import Crypto
import Foundation
import MoongateCore
import MoongateProxy

/// Whether the signature over the bytes is by the key ring's assertion key.
func verify(_ signed: Data, _ signature: Data, _ keys: KeyRing) throws -> Bool {
  keys.assertionKey(period: ManualClock.start.seconds / AssertionKeys.life).publicKey
    .isValidSignature(try P256.Signing.ECDSASignature(rawRepresentation: signature), for: signed)
}
