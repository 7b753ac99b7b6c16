-- Remove a passkey whose device was lost. A code to a number or address that the account has verified proves who asks;
-- an account that has other factors, such as a PIN, proves one of those before (else 403 step_up_required).
return flow "passkey_reset" {
  purpose = "reset",
  provider = "passkey",
  account = "existing",

  steps = {
    any_of { "email_code", "phone_otp" },
    { "passkey" },
  },

  lifetime = "15m",
  next = { returning = "/home" },
}
