import Hummingbird
import MoongateCore
import MoongateHTTP

/// `/auth/openid/device`: a device without a browser asks for the codes with which its user signs in elsewhere (RFC
/// 8628 section 3.1).
struct DeviceCall: Sendable {
  let clients: ClientEndpoints
  let apps: Apps

  var endpoints: [Endpoint] {
    [
      clients.endpoint(OpenIDPath.device) { request throws(AppFault) in
        let scopes = request.fields["scope"]?.split(separator: " ").map(String.init) ?? []
        let codes = try await apps.beginDevice(request.app, scopes: scopes, request.exchange.appCall)
        let page = request.exchange.gateway.publicURL.description + PagePath.device
        return .json(
          .members([
            "device_code": .text(codes.device.reveal()), "user_code": .text(codes.user.reveal()),
            "verification_uri": .text(page),
            "verification_uri_complete": .text(FormFields.address(page, ["user_code": codes.user.reveal()])),
            "expires_in": .number(Int(codes.expiresIn.components.seconds)),
            "interval": .number(Int(codes.interval.components.seconds)),
          ]))
      }
    ]
  }
}
