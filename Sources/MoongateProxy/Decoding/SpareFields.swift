/// An array for header fields that all decoders of one event loop reuse, instead of one for each head.
final class SpareFields {
  var fields: [HeadField] = []
}
