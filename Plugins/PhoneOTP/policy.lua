return policy "phone_otp" {}
