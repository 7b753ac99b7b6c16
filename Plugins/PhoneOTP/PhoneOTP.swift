// PhoneOTP
